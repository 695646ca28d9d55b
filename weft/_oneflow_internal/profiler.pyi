# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._oneflow_internal.profiler: RangePush, RangePop"""

from weft.profiler.spans import range_pop as RangePop, range_push as RangePush
