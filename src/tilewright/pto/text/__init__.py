"""PTO text: reading it into modules and printing modules back."""
