# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.utils: dlpack, data, checkpoint, global_view"""


from weft.utils import checkpoint as checkpoint
from weft.utils import data as data
from weft.utils import dlpack as dlpack
from weft.utils import global_view as global_view
from weft.utils import tensor as tensor

