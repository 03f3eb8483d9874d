"""From Python text to IR: capture, names, expressions, statements, programs."""
