"""Of the launcher's processes."""

from weft.distributed.elastic.multiprocessing.errors import record

__all__ = ["record"]
