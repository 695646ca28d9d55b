"""Weft, where a path says so: `export PYTHONPATH=$(python -m weft.oneflow)`."""

import weft.oneflow  # noqa: F401
