"""What a program means: NumPy, slow and obvious. Every back end is held to it."""
