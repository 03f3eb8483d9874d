"""The cache on disk: bytes kept between processes, found by a digest of what they were made from."""
