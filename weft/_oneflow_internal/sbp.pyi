# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._oneflow_internal.sbp: sbp"""

from weft.core.sbp import Sbp

sbp = Sbp
