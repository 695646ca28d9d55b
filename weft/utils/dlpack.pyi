# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.utils.dlpack: from_dlpack, to_dlpack"""

from weft import from_dlpack as from_dlpack, to_dlpack as to_dlpack
