"""The tensor: a handle with a spec, a blob with the data, and the blob's access record. Upper layers pass handles
around; only kernels and transports read the data.
"""
