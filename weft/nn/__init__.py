"""Modules, parameters and layers, written with the public functions alone. They hold the tensors that a model's data
meets on its way.
"""
