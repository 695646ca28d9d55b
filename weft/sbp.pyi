# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""How a global tensor lies on one axis of its placement: split, broadcast, or partial.

    split(dim)     each rank holds a slice along `dim`
    broadcast      each rank holds the whole
    partial_sum    the whole is the sum of what the ranks hold (also `partial_max`, `partial_min`)

Values are interned: equal means identical, so that caches may key on them at the cost of a pointer.
"""

from weft.core.sbp import Sbp as Sbp, nd as nd, parse as parse, show as show, split as split

broadcast: Sbp
partial_max: Sbp
partial_min: Sbp
partial_sum: Sbp
sbp = Sbp
