"""Programs of many ranks: their configuration, their windows in memory, and who runs them."""
