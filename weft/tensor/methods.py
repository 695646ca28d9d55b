"""The types of Tensor's methods that are ops: `methods.pyi`, written by `make stubs`."""

from __future__ import annotations


class Methods:
    """The base class of Tensor. `functional/` binds the methods from the registry of ops."""

    __slots__ = ()
