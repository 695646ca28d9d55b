"""One declaration per op: kernel, layout, gradient, samples. Local torch tensors go in and come out; this is the
only folder in which ATen is called, and both roads end here.
"""

import importlib
import pkgutil

from weft.ops import ops, outlines
from weft.ops.declaration import OPS, Op, op

# every file of this folder is imported, so a new file of ops needs no registration
for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
for _name, _form in outlines.INFERRED.items():
    OPS[_name].form(_form)

__all__ = ["OPS", "Op", "op", "ops"]
