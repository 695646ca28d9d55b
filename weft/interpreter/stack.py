"""Choose the interpreter of a call: lazy while a graph is being traced, else global or local by its operands."""

from __future__ import annotations

from typing import Any

from weft.core.dispatch import here
from weft.core.errors import PlacementError, WeftError
from weft.interpreter import eager_global, eager_local, lazy
from weft.job.builder import Builder
from weft.ops.declaration import Op
from weft.ops.explain import call_text, check_arguments
from weft.tensor.tensor import Tensor


def run(op: Op, args: tuple[Any, ...]) -> tuple[list[Tensor], tuple[Any, ...]]:
    """Run a call without gradients. Returns all outputs, hidden ones included, and the arguments as used."""
    if here.trace is not None:
        return lazy.run(op, args, builder())
    if is_global(op, args):
        return eager_global.run(op, args)
    return eager_local.run(op, args)


def compose(op: Op, args: tuple[Any, ...]) -> Any:
    """The outputs of the op's composition for these operands, or NotImplemented. Graphs use it for views, too."""
    if op.composition is None or not ((op.view and here.trace is not None) or is_global(op, args)):
        return NotImplemented
    try:
        return op.composition(*args)
    except WeftError:
        raise
    except Exception:  # of what isn't what it should be
        check_arguments(op, args)
        raise


def is_global(op: Op, args: tuple[Any, ...], suffix: str = "") -> bool:
    """Whether the operands are global; raises for a mix of global and local ones, with the op's name and `suffix`."""
    if op.conversion:
        return True
    kinds = set()
    for t in tensors(op, args):
        kinds.add(t.spec is not None)
    if op.placed is not None and args[op.placed] is not None:
        kinds.add(True)
    if len(kinds) == 2:
        check_arguments(op, args)
        raise PlacementError(
            f"{op.name}{suffix}: some operands are global and some are local: {call_text(op, args)}.\n"
            "Make the local ones global, x.to_global(placement=..., sbp=...), or the global ones local, x.to_local(). "
            "What a model makes itself is global under flow.utils.global_view.global_mode(True, placement=..., sbp=...)"
        )
    return True in kinds


def tensors(op: Op, args: tuple[Any, ...]) -> list[Tensor]:
    """The tensors among the operands, lists flattened. Raises for anything else in an operand's place."""
    found: list[Tensor] = []
    for i in op.operands:
        value = args[i]
        if isinstance(value, Tensor):
            found.append(value)
        elif op.params[i].kind == "tensors" and isinstance(value, (list, tuple)):
            given = [t for t in value if isinstance(t, Tensor)]
            found += given
            if len(given) != len(value) and any(t is not None and not isinstance(t, Tensor) for t in value):
                check_arguments(op, args)
        elif (value is not None and not isinstance(value, (int, float, complex))) or op.params[i].kind == "tensor":
            check_arguments(op, args)
    return found


def lazy_zeros(like: Tensor) -> Tensor:
    return lazy.zeros(like, builder())


def builder() -> Builder:
    """The trace in progress as what it is: an interpreter adds to its job."""
    trace = here.trace
    assert isinstance(trace, Builder)
    return trace
