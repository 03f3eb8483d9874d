"""What a kernel computes: tiles, fused groups of ops, products, vector math."""
