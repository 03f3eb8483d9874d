"""The CPU back end: a whole program as one native function, through LLVM."""
