"""Measure how fast kernels run beside torch, and how soon they do.

Every file in bench/rows is a row of the results, or a few. Contests put contenders side by side: each is checked
against torch, then they take turns, a round at a time, on each number of threads. Budgets measure one thing by itself.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec

import rows

EPILOG = """examples:
  python bench/kernels.py                        everything; writes bench/RESULTS.md and bench/results.svg
  python bench/kernels.py softmax --threads 1    one row on one thread; prints it and writes nothing
  python bench/kernels.py --rounds 5 --dry-run   everything, quickly and roughly
  python bench/kernels.py obvious --section obvious    one row; writes the section of that name

A ratio is the median over rounds of one contender's time over another's in the same round; above 1 ours is faster.
One thread is measured in processor time, which a busy machine does not stretch, and more in wall-clock time, over the
rounds in which nobody else took a processor; a * marks a ratio that had too few of those and took all. torch.compile
needs a C++ compiler (g++ or $CXX); without one its column says so.
"""


def options() -> argparse.Namespace:
    known = rows.names()
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"rows to measure: {', '.join(known)} (all)")
    parser.add_argument("--rounds", type=int, default=51, metavar="N", help="rounds of each contest (51)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N", help="thread counts (1 2)")
    parser.add_argument("--dry-run", action="store_true", help="print the results and write nothing")
    parser.add_argument("--section", metavar="NAME", help="write a section of bench/RESULTS.md, whichever the rows are")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.names if name not in known]:
        parser.error(f"there is no row {unknown[0]!r}; there are {', '.join(known)}")
    if min(chosen.rounds, *chosen.threads) < 1:
        parser.error("rounds and threads are at least 1")
    chosen.writes = not (chosen.names or chosen.dry_run or chosen.section)
    if chosen.writes and find_spec("matplotlib") is None:
        parser.error("the plot needs matplotlib: pip install -e '.[bench]', or measure with --dry-run")
    return chosen


def main() -> None:
    chosen = options()
    from session import Session  # torch takes seconds to import, and --help none

    from tilewright.call.backoff import hurry

    hurry()  # kernels that the cache kept are launched as they are after a hundred calls
    session = Session.run(rows.load(chosen.names or rows.names()), chosen.threads, chosen.rounds)
    session.show()
    if chosen.writes:
        session.save()
    elif chosen.section and not chosen.dry_run:
        session.save_section(chosen.section)


if __name__ == "__main__":
    main()
