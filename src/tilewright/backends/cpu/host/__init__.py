"""The host function of a program: control, calls, scalars, memory, its calling convention."""
