# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.utils.global_view`: programs that make tensors themselves, run with global ones; trees of tensors, converted.

A model that makes masks or positions in `forward` would mix local tensors with its global ones. Under `global_mode`
what it makes is global, too.
"""


__all__ = [
    "current_global_mode", "global_mode", "to_global", "to_local"
]

from weft.functional.create.global_view import current_global_mode as current_global_mode
from weft.functional.create.global_view import global_mode as global_mode
from weft.functional.create.global_view import to_global as to_global
from weft.functional.create.global_view import to_local as to_local

