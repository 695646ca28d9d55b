# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.utils.data._utils: """

from weft.utils.data._utils import collate as collate, worker as worker
