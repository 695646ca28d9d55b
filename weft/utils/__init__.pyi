# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.utils: data, checkpoint"""


from weft.utils import checkpoint as checkpoint
from weft.utils import data as data

