# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.signal: windows"""

from weft.signal import windows as windows
