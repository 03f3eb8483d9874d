"""The explorer: a program as one page that a browser opens, every stage beside the lines it came from."""
