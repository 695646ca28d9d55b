"""`implicit_replication`: local tensors beside global ones count as replicas. `local_map`, torch's own code, runs a
function on parts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from weft.core.derived import Derived
from weft.core.dispatch import intercept
from weft.core.errors import AssertedError
from weft.core.sbp import broadcast
from weft.ops import ops
from weft.ops.declaration import Op
from weft.tensor.tensor import Tensor


class _Replicating:
    """An interceptor: where an operand is global, local ones become replicas on its placement."""

    def intercept(self, op: Op, args: tuple[Any, ...], proceed: Callable[..., Any]) -> Any:
        given = [t for a in args for t in (a if isinstance(a, (list, tuple)) else (a,)) if isinstance(t, Tensor)]
        place = next((t.placement for t in given if t.is_global), None)
        if place is None or all(t.is_global for t in given):
            return proceed(op, args)

        def spread(a: Any) -> Any:
            if isinstance(a, (list, tuple)):
                return type(a)(map(spread, a))
            if isinstance(a, Tensor) and a.is_local:
                return ops.from_local(a, place, (broadcast,) * place.ndim, tuple(a.shape))
            return a

        return proceed(op, tuple(map(spread, args)))


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside, a local tensor beside a global one counts as a replica, the same on every rank."""
    with intercept(_Replicating()):
        yield


Derived("weft.distributed.tensor.local_maps", "torch.distributed.tensor.experimental._func_map",
        errors={"AssertionError": AssertedError})  # fmt: skip

from weft.distributed.tensor.local_maps import local_map  # noqa: E402

__all__ = ["implicit_replication", "local_map"]
