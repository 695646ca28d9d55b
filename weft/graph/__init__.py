"""`nn.Graph`: modules wrapped in blocks, traced once into a job, compiled and launched. A call's arguments are
flattened onto the job's inputs, and its outputs are unflattened from the plan's sinks.
"""
