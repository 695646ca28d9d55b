"""Public names and Tensor methods, bound from the registry of ops; signatures and overloads."""

from weft.core.dispatch import hooks
from weft.functional import (
    arithmetic,
    comm,
    conversion,
    creation,
    einstein,
    env,
    fused,
    indexing,
    info,
    likeness,
    linalg,
    names,
    neural,
    overwrite,
    places,
    random,
    reduction,
    sampling,
    shaping,
    statistics,
    table,
    typed,
)
from weft.tensor import printing
from weft.tensor.blob import Blob
from weft.tensor.tensor import Tensor
from weft.vm import vm_of


def _wait_read(blob: Blob) -> None:
    vm_of().wait_read(blob)


def _wait_write(blob: Blob) -> None:
    vm_of().wait_write(blob)


hooks.wait_read, hooks.wait_write = _wait_read, _wait_write


def bind() -> None:
    """Give Tensor its operators and methods."""
    for name, function in {**dict(table.listed("tensor")), **arithmetic.operators()}.items():
        if name not in Tensor.__dict__ or name in table.ADAPTERS["tensor"]:
            setattr(Tensor, name, function)
    Tensor.__getitem__, Tensor.__setitem__ = indexing.getitem, indexing.setitem  # type: ignore[attr-defined]
    Tensor.__iter__ = indexing.iterate  # type: ignore[attr-defined]
    Tensor.__repr__ = Tensor.__str__ = printing.show  # type: ignore[method-assign]
    Tensor.__format__ = printing.formatted  # type: ignore[method-assign]
    Tensor.T = property(shaping.transposed)  # type: ignore[attr-defined]
    Tensor.mT = property(shaping.matrix_transposed)  # type: ignore[attr-defined]


bind()
functions = dict(table.listed("flow"))

__all__ = [
    "bind", "comm", "conversion", "creation", "einstein", "env", "functions", "fused", "info", "likeness", "linalg",
    "names", "neural", "overwrite", "places", "random", "reduction", "sampling", "shaping", "statistics", "table",
    "typed",
]  # fmt: skip
