"""Options: what native code is emitted with, whatever its target."""

from __future__ import annotations

from tilewright import settings
from tilewright.records import record


@record
class Options:
    """The choices that change a program's code; they belong into the key of whoever keeps it."""

    checked: bool = True
    """Whether offsets, extents and divisors that only the running program knows are checked."""

    polled: bool = True
    """Whether loops end once the program has failed or was interrupted; without, to measure what that costs."""

    chosen_tiles: bool = True
    """Whether matrices are multiplied in tiles as the machine wants them, or as the program has them."""

    small_alone: bool = True
    """Whether turns of little work stay on the thread that calls, or are shared like others."""

    schedule: str = ""
    """How kernels on a GPU are scheduled, where rules are not to say that."""

    amx: str = "on"
    """Whether products run on matrix tiles, where the target has some: `on` or `off`; `emulated` needs none."""

    cores: int = 1
    """How many cores turns of products are made for: large tiles leave few of them."""

    located: bool = False
    """Whether instructions say which line of the author's they were made for, as debuggers and pages want it."""

    @staticmethod
    def current() -> Options:
        """Return what the settings say now, of which whoever keeps code has all in its key."""
        said = settings.code_settings()
        return Options(
            said.is_checked,
            chosen_tiles=said.chooses_tiles,
            small_alone=said.keeps_small_work,
            schedule=said.cuda_schedule,
            amx=said.amx,
            cores=said.cores,
            located=said.is_located,
        )
