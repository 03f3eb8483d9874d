"""Every op of the language, one noun a file. A declaration is all there is to an op."""
