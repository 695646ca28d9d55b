# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.framework: """


from weft.framework import args_tree as args_tree
from weft.framework import balanced_splitter as balanced_splitter
from weft.framework import check_point_v2 as check_point_v2
from weft.framework import dtype as dtype
from weft.framework import graph_build_util as graph_build_util
from weft.framework import sysconfig as sysconfig
from weft.framework import tensor as tensor

