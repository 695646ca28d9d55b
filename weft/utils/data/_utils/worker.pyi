# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.utils.data._utils.worker: ExceptionWrapper, get_worker_info"""

from torch._utils import ExceptionWrapper as ExceptionWrapper
from weft.utils.data import get_worker_info as get_worker_info
