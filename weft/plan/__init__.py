"""The physical graph of one rank as text and data: tasks, registers, streams. The compiler writes it, the verifier
proves that it can run, the runtime builds actors from it.
"""
