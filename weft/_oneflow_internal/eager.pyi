# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._oneflow_internal.eager: Sync"""

from weft.system.devices import synchronize as Sync
