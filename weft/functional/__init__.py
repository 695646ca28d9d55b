"""Public names and Tensor methods, bound from the registry of ops; signatures and overloads."""

from weft.functional import (
    arithmetic,
    comm,
    conversion,
    counts,
    creation,
    defaults,
    distributions,
    einstein,
    env,
    factors,
    fft,
    forms,
    further,
    fused,
    indexing,
    info,
    likeness,
    linalg,
    matrices,
    methods,
    names,
    neural,
    older,
    overwrite,
    parts,
    pieces,
    places,
    pools,
    random,
    ranked,
    reduction,
    sampling,
    series,
    shaping,
    special,
    statistics,
    surface,
    table,
    typed,
    unchecked,
    windows,
)
from weft.tensor import printing
from weft.tensor.described import Described
from weft.tensor.tensor import Tensor


def bind() -> None:
    """Give Tensor its operators and methods."""
    for name, function in {**dict(table.listed("tensor")), **arithmetic.operators()}.items():
        if not (name in Tensor.__dict__ or name in Described.__dict__) or name in table.ADAPTERS["tensor"]:
            setattr(Tensor, name, function)
    Tensor.__array_priority__ = 1000  # type: ignore[attr-defined]  # numpy leaves `number * tensor` to the tensor
    Tensor.__getitem__, Tensor.__setitem__ = indexing.getitem, indexing.setitem  # type: ignore[attr-defined]
    Tensor.__iter__ = indexing.iterate  # type: ignore[attr-defined]
    Tensor.__repr__ = Tensor.__str__ = printing.text  # type: ignore[method-assign]
    Tensor.__format__ = printing.formatted  # type: ignore[method-assign]
    Tensor.T = property(shaping.transposed)  # type: ignore[attr-defined]
    Tensor.mT = property(shaping.matrix_transposed)  # type: ignore[attr-defined]
    methods.bind()
    Tensor.H = Tensor.mH = property(pieces.adjoint)  # type: ignore[attr-defined]
    Tensor.real, Tensor.imag = property(pieces.real), property(pieces.imag)  # type: ignore[attr-defined]


bind()
functions = dict(table.listed("flow"))

__all__ = [
    "bind", "comm", "conversion", "counts", "creation", "defaults", "distributions", "einstein", "env", "factors",
    "fft", "forms", "functions", "further", "fused", "info", "likeness", "linalg", "matrices", "methods", "names",
    "neural", "older", "overwrite", "parts", "pieces", "places", "pools", "random", "ranked", "reduction", "sampling",
    "series", "shaping", "special", "statistics", "surface", "table", "typed", "unchecked", "windows",
]  # fmt: skip
