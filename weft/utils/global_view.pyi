# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.utils.global_view`: programs that create tensors, run with global ones; conversion of nested tensors.

A model that creates masks or positions in `forward` would mix local tensors with its global ones. Under
`global_mode` it creates global ones.
"""

from weft.functional.create.global_view import (
    current_global_mode as current_global_mode, global_mode as global_mode, to_global as to_global, to_local as to_local
)
