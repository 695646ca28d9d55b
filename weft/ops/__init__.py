"""One declaration per op: kernel, layout, gradient, samples. Local torch tensors go in and come out; this is the
only folder in which ATen is called, and both roads end here.
"""
