"""Where Tensor's methods that are ops have their types: `methods.pyi`, written by `make stubs`."""

from __future__ import annotations


class Methods:
    """The base of Tensor. `functional/` gives Tensor the methods themselves, from the registry of ops."""

    __slots__ = ()
