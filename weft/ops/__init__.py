"""One declaration per op: kernel, layout, gradient, samples. Local torch tensors go in and come out; this is the
only folder in which ATen is called, and both roads end here.
"""

import importlib
import pkgutil

from weft.ops.declaration import OPS, Op, op

# every family in this folder declares itself: a new op, or a new file of ops, touches nothing else
for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["OPS", "Op", "op"]
