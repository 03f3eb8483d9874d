"""The doctor: what this machine has for kernels, what follows from that, and what is missing."""

from __future__ import annotations

import argparse
from itertools import groupby

from tilewright.backends.interface import find
from tilewright.tools import screen
from tilewright.tools.command import Command
from tilewright.tools.findings import Finding, findings

ABOUT = """Say which Python, packages, processor, GPU and compilers there are, where compiled code is kept and whether
that is in order, how many threads kernels run on, and which settings there are: each line says what follows, and what
to do where something can be done."""


def _report(options: argparse.Namespace) -> None:
    with screen.working("looking around"):
        every = list(findings())
    if options.json:
        screen.as_json([finding._asdict() for finding in every])
        return
    for group, found in groupby(every, lambda finding: finding.group):
        screen.heading(group, _ABOUT.get(group) or f"takes memory of {' and '.join(find(group).devices)}")
        screen.columns((finding.name, _said(finding)) for finding in found)


def _said(finding: Finding) -> str:
    follows = f": {finding.follows}" if finding.follows else ""
    return f"{finding.value}{follows}" + (f" (help: {finding.help})" if finding.help else "")


_ABOUT = {
    "packages": "what kernels are written with",
    "processor": "what native code is made for",
    "threads": "what runs side by side",
    "cache": "where compiled code is kept",
    "tools": "what looks at kernels from outside",
    "settings": "what the environment says",
}

COMMAND = Command("doctor", "say what this machine has", ABOUT, _report)
