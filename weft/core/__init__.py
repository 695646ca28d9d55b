"""The values that everything else speaks of: dtypes, devices, placements, sbp, specs, shards, ranks, errors, and the
protocol by which a lower layer calls an upper one. No data passes through here; what the data is called does.
"""
