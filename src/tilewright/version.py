"""The version: its one home, which the wheel's metadata and saved programs read."""

__version__ = "0.1.0"
