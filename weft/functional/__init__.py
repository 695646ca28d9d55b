"""Public functions composed of ops, and Tensor's methods: a folder for each subject, as in `ops`."""

import importlib
import pkgutil

from weft.api import table
from weft.functional.tensor.binding import bind

# every file here binds its names when it is imported, so a new one needs no registration
for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

bind()
functions = dict(table.listed("flow"))

__all__ = ["bind", "functions"]
