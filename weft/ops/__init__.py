"""One declaration per op: kernel, layout, gradient, samples. Local torch tensors go in and come out; this is the
only folder in which ATen is called, and both roads end here.
"""

import importlib
import pkgutil

from weft.ops import ops
from weft.ops.declaration import OPS, Op, op

# every family in this folder declares itself: a new op, or a new file of ops, touches nothing else
for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

ops.__dict__.update(OPS)  # from now on a look at `ops.mul` is a look into a module

__all__ = ["OPS", "Op", "op", "ops"]
