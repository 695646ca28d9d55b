"""`flow.distributed.checkpoint`: `torch.distributed.checkpoint`'s names over Weft's files, which hold data and no code.

A checkpoint is a folder. Whole values are written, so it can be read in any layout and by any number of ranks.
"""

from weft.core.errors import CheckpointError as CheckpointException
from weft.distributed.checkpoint import format_utils, state_dict
from weft.distributed.checkpoint.stateful import Stateful
from weft.distributed.checkpoint.storage import (
    DefaultLoadPlanner,
    DefaultSavePlanner,
    FileSystemReader,
    FileSystemWriter,
    Saving,
    async_save,
    load,
    load_state_dict,
    save,
    save_state_dict,
)

__all__ = [
    "CheckpointException", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "Saving",
    "Stateful", "async_save", "format_utils", "load", "load_state_dict", "save", "save_state_dict", "state_dict",
]  # fmt: skip
