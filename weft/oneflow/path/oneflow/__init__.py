"""Weft as `oneflow`, by `export PYTHONPATH=$(python -m weft.oneflow)`."""

import weft.oneflow  # noqa: F401
