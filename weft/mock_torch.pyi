# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.mock_torch`: while it is enabled, `import torch` in a user's program gives Weft.

It depends on the importing module: installed packages still import torch itself, unless `enable(packages=("timm",))`
names them. What Weft lacks and isn't about tensors, such as `torch.fx`, is torch's own.
"""

from weft.interop.mock_torch import (
    ModuleWrapper as ModuleWrapper, disable as disable, enable as enable, error_msg as error_msg,
    is_enabled as is_enabled
)
