"""Mixed precision: which ops run in which dtype, and the scaling of gradients. Casts are put on the path of data,
eagerly and as a pass.
"""
