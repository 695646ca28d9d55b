"""Layers and functions of layers that only OneFlow's programs use."""
