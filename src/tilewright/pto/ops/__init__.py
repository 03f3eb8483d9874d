"""Every op of PTO, one noun a file. A declaration is all there is to an op."""
