"""The tensor: a handle with a spec, a blob with the data, and the blob's access record. Data lies here; the layers
above pass handles around, and only kernels and transports open them.
"""
