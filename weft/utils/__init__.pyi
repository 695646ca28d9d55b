# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.utils: dlpack, data, checkpoint, global_view"""

from weft.utils import (
    checkpoint as checkpoint, data as data, dlpack as dlpack, global_view as global_view, tensor as tensor
)
