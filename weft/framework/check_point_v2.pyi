# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.framework.check_point_v2: load, save, _broadcast_py_object"""

from weft import load as load, save as save
