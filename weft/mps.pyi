# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.mps: is_available, device_count"""

def device_count() -> int:
    """How many mps devices Weft computes on here."""

def is_available() -> bool:
    """Whether Weft computes on mps devices here."""
