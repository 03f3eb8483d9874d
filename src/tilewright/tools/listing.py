"""Listings: the ops of the language and the passes of the compiler, by name."""

from __future__ import annotations

import argparse
from itertools import groupby

from tilewright.core.op import OpSpec
from tilewright.frontend.foreign import meant
from tilewright.ops.registry import specs
from tilewright.passes.pipeline import DEFAULT
from tilewright.passes.stages import file_of, summary
from tilewright.tools import screen
from tilewright.tools.coming_from import about, names_of
from tilewright.tools.command import Command, option
from tilewright.tools.naming import check_known
from tilewright.tools.reference import entry, heading, noun_of
from tilewright.tools.signatures import signatures

OPS = """List the ops of the language, or explain one: its signatures, what it takes and gives, what NumPy, torch,
Triton and Numba call it. A word that no op is called lists those that are about it."""
OPS_EXAMPLES = """examples:
  tilewright ops                all of them, by what they are about
  tilewright ops row_max        one
  tilewright ops torch.where    by what another library calls it
  tilewright ops mask           all that are about something
"""


def _instead(name: str) -> tuple[str, bool]:
    """Return what to say of a name that no op has, and whether that is better than the nearest spelling."""
    library, _, last = name.rpartition(".")
    return meant(last) or "`tilewright ops` lists them", bool(meant(last) or library)


def _ops(options: argparse.Namespace) -> None:
    if options.name is not None:
        _explain(options.name.removeprefix("pl."), is_json=options.json)
    elif options.json:
        screen.as_json([_plain(spec) for spec in specs() if spec.has_a_name])
    else:
        for noun, group in groupby(sorted((s for s in specs() if s.has_a_name), key=noun_of), noun_of):
            screen.heading(noun, heading(noun).partition("\n\n")[0])
            screen.columns((next(iter(signatures(spec))), spec.doc.partition("\n\n")[0]) for spec in group)


def _explain(name: str, *, is_json: bool) -> None:
    """Show one op, or those that are about something."""
    found = {spec: names_of(spec) for spec in specs() if spec.has_a_name}
    exact = [spec for spec, names in found.items() if name in names]
    near = exact or about(name)
    if not near:
        check_known(name, [each for names in found.values() for each in names], "op", *_instead(name))
    if is_json:
        screen.as_json([_plain(spec) for spec in near])
    elif exact:
        for spec in exact:
            screen.markdown(entry(spec))
    else:
        screen.heading(name, "what is called so, or said to be about it")
        screen.columns((next(iter(signatures(spec))), spec.doc.partition("\n\n")[0]) for spec in near)


def _plain(spec: OpSpec) -> dict[str, object]:
    signature = list(signatures(spec).values())
    return {
        "name": spec.name,
        "signatures": signature,
        "doc": spec.doc,
        "group": noun_of(spec),
    }


def _passes(options: argparse.Namespace) -> None:
    if options.json:
        found = [{"name": each.name, "file": file_of(each), "does": summary(each)} for each in DEFAULT]
        screen.as_json(found)
        return
    screen.columns((f"{number:2} {each.name}", summary(each)) for number, each in enumerate(DEFAULT, start=1))


NAME = option(
    "name", nargs="?", metavar="NAME", help="as in add, pl.add, tile.add or np.where, or a word that is said of it",
    offers=lambda: sorted({spec.name for spec in specs() if spec.has_a_name}),
)  # fmt: skip
OPS_COMMAND = Command("ops", "list ops, or explain one", OPS, _ops, [NAME], OPS_EXAMPLES)
PASSES_COMMAND = Command("passes", "list the passes", "List the passes in order.", _passes)
