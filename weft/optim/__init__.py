"""Optimizers and learning rate schedules. Gradients come in, parameters are written, by the same ops eagerly and in
a graph.
"""
