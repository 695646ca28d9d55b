"""Benchmarks of Weft against torch and others: `python -m bench` measures each pair alternately, in one run."""
