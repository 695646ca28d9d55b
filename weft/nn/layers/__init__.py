"""Layers, in files with PyTorch's names."""
