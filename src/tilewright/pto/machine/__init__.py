"""The machine that PTO runs on, as statements of the tile IR: memories, tiles, registers, and the walk over ops."""
