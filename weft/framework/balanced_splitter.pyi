# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.framework.balanced_splitter: BalancedPartNums, BalancedRanges"""

from weft.interop.oneflow import BalancedPartNums as BalancedPartNums, BalancedRanges as BalancedRanges
