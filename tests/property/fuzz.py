"""Fuzzing: campaigns run for a stated time, on processes of their own, each failure with the way to see it again.

`make fuzz MINUTES=10` is `python -m property.fuzz --minutes 10`. With `--number`, one attempt is made again, here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import SystemRandom

from property.crashes import note_of
from rich.live import Live
from rich.table import Table

TESTS = Path(__file__).parents[1]
LIMIT = 120
"""Seconds after which an attempt hangs."""
MOST = 20
"""After how many failures there is no need for more."""


@dataclass(frozen=True)
class Failure:
    """An attempt that found something."""

    campaign: str
    number: int
    what: str

    def __str__(self) -> str:
        again = f'make fuzz ARGS="{self.campaign} --number {self.number}"'
        return f"{self.campaign} {self.number} failed:\n{self.what}\nto see it again: {again}\n"


@dataclass
class Tally:
    """What has become of the attempts of all campaigns."""

    names: Sequence[str]
    started: float = field(default_factory=time.monotonic)
    tried: dict[str, int] = field(init=False)
    failures: list[Failure] = field(default_factory=list[Failure])

    def __post_init__(self) -> None:
        self.tried = dict.fromkeys(self.names, 0)

    def table(self, left: float) -> Table:
        """Return the tally as it is drawn while time is left."""
        passed = time.monotonic() - self.started
        table = Table(title=f"{sum(self.tried.values())} attempts, {max(left, 0):.0f} s left", title_justify="left")
        for heading in ("campaign", "tried", "per second", "failures", "numbers"):
            table.add_column(heading, justify="left" if heading in ("campaign", "numbers") else "right")
        for name, tried in self.tried.items():
            found = [failure.number for failure in self.failures if failure.campaign == name]
            shown = ", ".join(map(str, found[:3])) + (", ..." if len(found) > 3 else "")
            table.add_row(name, str(tried), f"{tried / passed:.1f}", str(len(found)), shown)
        return table


class Worker:
    """A process that makes one attempt after the other, replaced by another one where it ends or hangs."""

    def __init__(self, tally: Tally, first: int, step: int) -> None:
        self.tally, self.next, self.step = tally, first, step
        self.process: subprocess.Popen[str] | None = None
        self.attempt: tuple[str, int] | None = None
        self.since = time.monotonic()
        self.is_over = False
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self.is_over:
            with self._start() as process:
                if self.is_over:  # it was stopped while this one started
                    process.kill()
                self._listen(process)

    def command(self) -> list[str]:
        """Return what starts a process that begins with the next attempt."""
        return [sys.executable, "-m", "property.fuzz", *self.tally.names, "--work", f"{self.next}:{self.step}"]

    def _start(self) -> subprocess.Popen[str]:
        paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": paths, "TILEWRIGHT_CACHE_DIR": "off"}
        environment.pop("PYTEST_XDIST_WORKER", None)  # a process of its own, whoever started it
        self.attempt, self.since = None, time.monotonic()
        self.process = subprocess.Popen(
            self.command(), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        return self.process

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Take what a process says until it ends."""
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            campaign, number, state = json.loads(line)
            if state is None:
                self.attempt, self.since, self.next = (campaign, number), time.monotonic(), number + self.step
                continue
            self.tally.tried[campaign] += 1
            if state:
                self.tally.failures.append(Failure(campaign, number, state))
        said, code = process.stderr.read(), process.wait()
        if not self.is_over:
            self._ended(process.pid, code, said)

    def _ended(self, pid: int, code: int, said: str) -> None:
        """Take note of a process that ended of itself, or was ended since it took too long."""
        if self.attempt is None:
            self.is_over = True
            self.tally.failures.append(Failure("fuzz", self.next, f"no attempt could be made:\n{said}"))
            return
        slow = time.monotonic() - self.since > LIMIT
        what = f"it took more than {LIMIT} s" if slow else f"its process ended with code {code}"
        self.tally.failures.append(Failure(*self.attempt, "\n".join([what, said, self._last_words(pid)])))

    def _last_words(self, pid: int) -> str:
        """Return what a process was running when it ended, which is then in nobody's way."""
        note = note_of("main", pid)
        words = note.read_text(encoding="utf-8") if note.exists() else ""
        note.unlink(missing_ok=True)
        return words

    def watch(self) -> None:
        """End an attempt that hangs."""
        if self.process is not None and time.monotonic() - self.since > LIMIT:
            self.process.kill()

    def stop(self) -> None:
        """End the process, and wait for that."""
        self.is_over = True
        if self.process is not None:
            self.process.kill()
        self.thread.join()
        if self.process is not None:
            self._last_words(self.process.pid)


def fuzzed(tally: Tally, workers: Sequence[Worker], seconds: float) -> list[Failure]:
    """Let workers work for so many seconds, the tally shown meanwhile, and return what they found."""
    end = time.monotonic() + seconds
    for worker in workers:
        worker.thread.start()
    try:
        with Live(tally.table(seconds), refresh_per_second=2) as live:
            while time.monotonic() < end and len(tally.failures) < MOST and not all(w.is_over for w in workers):
                time.sleep(min(0.5, max(0.0, end - time.monotonic())))
                for worker in workers:
                    worker.watch()
                live.update(tally.table(end - time.monotonic()))
    finally:
        for worker in workers:
            worker.stop()
    return tally.failures


def attempt(name: str, number: int) -> str:
    """Return what is wrong with one attempt, or nothing."""
    from property.campaigns import CAMPAIGNS

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # as in the tests
            CAMPAIGNS[name](number)
    except Exception:  # whatever it is, somebody wants to see it
        return traceback.format_exc()
    return ""


def work(names: Sequence[str], first: int, step: int) -> None:
    """Make one attempt after the other, for whoever reads what is printed; what kernels print nobody reads."""
    with os.fdopen(os.dup(1), "w") as told, open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        for number in count(first, step):
            name = names[number // step % len(names)]
            print(json.dumps([name, number, None]), file=told, flush=True)
            print(json.dumps([name, number, attempt(name, number)]), file=told, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 where nothing was found."""
    from property.campaigns import CAMPAIGNS, text_of

    parser = argparse.ArgumentParser(prog="python -m property.fuzz", description=__doc__)
    parser.add_argument("campaigns", nargs="*", help=f"which: {', '.join(CAMPAIGNS)}; all of them where none is named")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first", type=int, default=SystemRandom().randrange(1 << 40), help="the first number")
    parser.add_argument("--number", type=int, help="make this one attempt again")
    parser.add_argument("--text", metavar="FILE", help="with --number: write its program, for `tilewright bisect FILE`")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    names: list[str] = given.campaigns or [*CAMPAIGNS]
    unknown = [name for name in names if name not in CAMPAIGNS]
    if unknown:
        parser.error(f"no campaign is called {', '.join(unknown)}; there are {', '.join(CAMPAIGNS)}")
    if given.work:
        first, step = map(int, given.work.split(":"))
        work(names, first, step)
    if given.number is not None and given.text:
        Path(given.text).write_text(text_of(names[0], given.number), encoding="utf-8")
    if given.number is not None:
        found = [Failure(name, given.number, what) for name in names if (what := attempt(name, given.number))]
    else:
        print(f"from number {given.first} on")
        tally = Tally(names)
        workers = [Worker(tally, given.first + index, given.jobs) for index in range(given.jobs)]
        found = fuzzed(tally, workers, 60 * given.minutes)
    for failure in found:
        print(failure)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
