"""Public functions composed of ops, and Tensor's methods: a folder for each subject, the same as below `ops`."""

import importlib
import pkgutil

from weft.api import table
from weft.functional.tensor.binding import bind

# every file here binds its names in the table when it is imported: a new one touches nothing else
for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

bind()
functions = dict(table.listed("flow"))

__all__ = ["bind", "functions"]
