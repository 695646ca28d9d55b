"""How bytes get from rank to rank: groups with their collectives, and channels over preallocated buffers, one file
per backend. Plain torch tensors come in on one rank and go out on another; nothing here knows what they mean.
"""
