"""Traced bodies: `@pto.jit` without `source=`, the embedded form of the same ops."""
