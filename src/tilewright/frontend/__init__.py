"""From Python text to IR: capture, names, expressions, statements, programs."""

from tilewright import ops as ops
