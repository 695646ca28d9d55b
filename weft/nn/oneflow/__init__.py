"""Layers and their functions that only OneFlow's programs use."""
