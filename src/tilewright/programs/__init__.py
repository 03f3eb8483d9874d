"""Compiled programs, and what people do with them."""
