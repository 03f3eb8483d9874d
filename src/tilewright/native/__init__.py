"""Machine code in this process: LLVM's text, object files, loading them, threads and signals."""
