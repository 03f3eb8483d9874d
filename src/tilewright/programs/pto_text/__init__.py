"""Programs as PTO text that reads back as the same kernel."""
