# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.cpu: is_available, device_count, current_device, synchronize"""


from weft.functional.kinds import current_device as current_device
from weft.functional.kinds import synchronize as synchronize

def device_count() -> int:
    """How many cpu devices this library computes on here."""

def is_available() -> bool:
    """Whether this library computes on cpu devices here."""
