"""What outlives the process: digests, fingerprints, files, locks."""
