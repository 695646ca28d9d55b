"""Write a model as if for one very large device, and run it on many: `import weft as flow`.

The folders lie in the order of the path of data, which docs/architecture.md draws.
"""

__version__ = "0.1.0"
