"""Programs as Python text that runs with torch alone."""
