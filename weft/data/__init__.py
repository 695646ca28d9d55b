"""Datasets, samplers and loaders. Data enters the program here, on threads and processes of its own, as tensors for
a loop or as the source of a graph.
"""
