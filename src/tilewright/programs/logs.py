"""Logs: how much is said about compiling and running, on the logger `tilewright`; nothing below warnings by itself."""

from __future__ import annotations

from enum import IntEnum


class LogLevel(IntEnum):
    """How much something matters."""

    DEBUG = 10
    INFO = 20
    TIMING = 25
    WARN = 30
    ERROR = 40
    EVENT = 45
    FATAL = 50
    NULL = 60
    NONE = 60


LOGGER = "tilewright"
_levels: dict[str, int] = {"runtime": LogLevel.WARN, "compiler": LogLevel.WARN}


def configure_log(level: int | str, *, sync_pypto: bool = False) -> None:
    """Say from which level on runs are logged, and with `sync_pypto` compilations too; ValueError lists the names."""
    _levels["runtime"] = _known(level)
    if sync_pypto:
        set_log_level(level)


def set_log_level(level: int | str) -> None:
    """Say from which level on compilations are logged."""
    _levels["compiler"] = _known(level)


def log_level() -> int:
    """Return from which level on runs are logged."""
    return int(_levels["runtime"])


def note(about: str, level: LogLevel, message: str) -> None:
    """Log something about the `runtime` or the `compiler`, where its level is high enough."""
    if level >= _levels[about]:
        import logging  # which nobody loads who has asked for no log

        logger = logging.getLogger(LOGGER)
        if not logger.isEnabledFor(level):
            logger.setLevel(level)
        logger.log(level, message)


def _known(level: int | str) -> int:
    """Return a level, given as a number or by its name."""
    if isinstance(level, int):
        return level
    if level.upper() not in LogLevel.__members__:
        raise ValueError(f"level must be a number or one of {', '.join(LogLevel.__members__).lower()}, got {level!r}")
    return LogLevel[level.upper()]
