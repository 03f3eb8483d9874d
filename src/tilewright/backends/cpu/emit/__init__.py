"""A function being emitted: its values, its memory, how it fails, what it has recorded."""
