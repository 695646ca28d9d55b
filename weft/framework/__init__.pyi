# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.framework: """

from weft.framework import (
    args_tree as args_tree, balanced_splitter as balanced_splitter, check_point_v2 as check_point_v2, dtype as dtype,
    graph_build_util as graph_build_util, sysconfig as sysconfig, tensor as tensor
)
