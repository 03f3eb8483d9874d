"""The walk over Python's syntax, which every language written as Python functions shares."""
