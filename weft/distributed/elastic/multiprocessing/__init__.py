"""The package of `errors`."""

from weft.distributed.elastic.multiprocessing.errors import record

__all__ = ["record"]
