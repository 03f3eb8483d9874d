"""Readers: what PTO text is held to before anybody gets it."""

from __future__ import annotations

from collections.abc import Callable

READERS: list[Callable[[str], object]] = []
"""What reads text and raises for what is wrong with it, each asked in turn; one that is asked may sign in others.

`tilewright.pto` signs in what verifies text, and the language what loads that.
"""
