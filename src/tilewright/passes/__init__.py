"""Passes: programs into equal programs, nearer to the machine. Each returns a new program."""
