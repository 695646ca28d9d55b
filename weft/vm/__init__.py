"""The eager road's engine: instructions with const, mut and mut2 operands, the dependencies between their blobs, and
the streams that run them. A call comes in as an instruction, runs inline where it can, and leaves its blobs written.
"""
