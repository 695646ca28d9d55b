"""The graph road's engine: actors that exchange registers and acknowledgements, the bus between them and the threads
that drive them. A plan comes in once; then every launch flows through its registers.
"""
