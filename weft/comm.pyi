# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.comm`: collectives and messages on local tensors, spelled as in torch.distributed.

Every rank of the world, or of `group`, must call each collective, in the same order. Messages go from one rank to
rank to another. Ranks are always counted in the world.
"""


from weft.system.comm import all_gather as all_gather
from weft.system.comm import all_gather_into_tensor as all_gather_into_tensor
from weft.system.comm import all_reduce as all_reduce
from weft.system.comm import all_reduce_later as all_reduce_later
from weft.system.comm import all_to_all as all_to_all
from weft.system.comm import barrier as barrier
from weft.system.comm import broadcast as broadcast
from weft.system.comm import exchange as exchange
from weft.system.comm import gather as gather
from weft.system.comm import recv as recv
from weft.system.comm import reduce as reduce
from weft.system.comm import reduce_scatter as reduce_scatter
from weft.system.comm import reduce_scatter_tensor as reduce_scatter_tensor
from weft.system.comm import scatter as scatter
from weft.system.comm import send as send

