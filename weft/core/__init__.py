"""The values that all layers share: dtypes, devices, placements, sbp, specs, shards, ranks, errors, and the protocol by
which a lower layer calls an upper one.
"""
