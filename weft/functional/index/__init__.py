"""Indexing: `x[...]`, gather, scatter."""
