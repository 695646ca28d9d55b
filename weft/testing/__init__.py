"""Oracles for tests: comparison with torch, layouts by brute force, programs that run on several ranks at once."""

from weft.testing.compare import assert_close

__all__ = ["assert_close"]
