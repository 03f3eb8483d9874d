"""The host function around a program's launches: what the processor does for a GPU."""
