# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.utils.data._utils.collate: default_collate, default_convert"""

from weft.utils.data import default_collate as default_collate, default_convert as default_convert
