"""Readable recipes over the public API: sbp per parameter, pipeline stages, data parallelism. They decide where data
lies; the layers below move it.
"""
