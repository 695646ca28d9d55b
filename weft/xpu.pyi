# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.xpu: is_available, device_count"""

def device_count() -> int:
    """How many xpu devices Weft computes on here."""

def is_available() -> bool:
    """Whether Weft computes on xpu devices here."""
