# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._oneflow_internal.exception: Exception, IndexError, NotImplementedError, RuntimeError, TypeError"""

from weft.core.errors import WeftError

from builtins import (
    IndexError as IndexError, NotImplementedError as NotImplementedError, RuntimeError as RuntimeError,
    TypeError as TypeError
)

Exception = WeftError
