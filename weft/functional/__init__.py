"""The public names and the methods of the tensor, bound from the ops' declarations, with signatures, overloads and
argument errors. A user's call enters here and goes on to dispatch.
"""
