"""Back ends: programs into code for a machine."""
