"""Examples of PTO's ops: kernels that load what an op takes, do it, and store what it gives."""
