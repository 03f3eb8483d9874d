"""The doctor: what this machine has for each back end, and what is missing."""

from __future__ import annotations

import argparse

from tilewright.backends.interface import Backend, backend_names, find
from tilewright.tools import screen

ABOUT = "Say for each back end which memory its programs take, what this machine has for it, and what is missing."


def configure(parser: argparse.ArgumentParser) -> None:
    """Let a parser take the command."""
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> None:
    for backend in map(find, backend_names()):
        screen.heading(backend.name, f"takes memory of {' and '.join(backend.devices)}")
        screen.columns(_facts(backend))


def _facts(backend: Backend) -> list[tuple[str, str]]:
    objection = backend.objection()
    state = f"programs are not compiled here: {objection}" if objection else "programs are compiled here"
    return [("state", state), *backend.facts().items()]
