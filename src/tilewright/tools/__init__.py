"""Tools: the command line and the generated documentation."""
