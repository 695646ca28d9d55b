"""Byte sizes in human-readable units."""

from __future__ import annotations


def amount(size: float) -> str:
    """Bytes in a suitable unit.

    >>> amount(1536), amount(3 << 20), amount(12)
    ('1.5 KB', '3.1 MB', '12 B')
    """
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
