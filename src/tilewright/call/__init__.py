"""The call: arguments as records, what stands for them, and the machine code between Python and a program."""
