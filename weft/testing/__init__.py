"""Oracles and tools for tests: comparison with torch, layouts by brute force, programs that run on several ranks at
once.
"""
