"""Binds Tensor's operators, methods and properties."""

from __future__ import annotations

from weft.api import table
from weft.functional.index import indexing
from weft.functional.pointwise import complex_numbers
from weft.functional.shape import views
from weft.functional.tensor import methods, operators
from weft.tensor import printing
from weft.tensor.described import Described
from weft.tensor.tensor import Tensor


def bind() -> None:
    """Bind Tensor's operators and methods."""
    for name, function in {**dict(table.listed("tensor")), **operators.operators()}.items():
        if not (name in Tensor.__dict__ or name in Described.__dict__) or name in table.ADAPTERS["tensor"]:
            setattr(Tensor, name, function)
    Tensor.__array_priority__ = 1000  # type: ignore[attr-defined]  # numpy leaves `number * tensor` to the tensor
    Tensor.__getitem__, Tensor.__setitem__ = indexing.getitem, indexing.setitem  # type: ignore[attr-defined]
    Tensor.__iter__ = indexing.iterate  # type: ignore[attr-defined]
    Tensor.__repr__ = Tensor.__str__ = printing.text  # type: ignore[method-assign]
    Tensor._meta_repr = printing.meta_text  # type: ignore[attr-defined]
    Tensor.__format__ = printing.formatted
    Tensor.T = property(views.transposed)  # type: ignore[attr-defined]
    Tensor.mT = property(views.matrix_transposed)  # type: ignore[attr-defined]
    methods.bind()
    Tensor.H = Tensor.mH = property(views.adjoint)  # type: ignore[attr-defined]
    Tensor.real, Tensor.imag = property(complex_numbers.real), property(complex_numbers.imag)  # type: ignore[attr-defined]
