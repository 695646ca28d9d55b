"""Gradients during a trace. Backward computes shares of them: of the mean over micro-batches, and scaled if the graph
has a scaler, as `scaler.scale(loss / k).backward()` does. What `build` reads as `.grad`, or gives, is whole: what
`loss.backward()` finds for a micro-batch by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.core.dispatch import here, hooks
from weft.job.job import Job
from weft.job.value import Value
from weft.ops import OPS, ops
from weft.tensor.tensor import Tensor, of_value


class Gradients:
    """The leaves' gradients. A share that nobody reads is never made whole.

    scale   the names of the host's numbers by which a loss's gradient is multiplied, and divided in the end
    leaves  by identity, those that got a gradient, and their `.grad` from before
    shares  what backward began with, and what follows from it
    shown   by what `build` was shown of a share, that share
    unread  by identity of a leaf, its `.grad` as backward left it
    """

    def __init__(self, job: Job, times: Callable[[Tensor, str], Tensor]) -> None:
        self.job, self._times = job, times
        self.scale: tuple[str, str] | None = None
        self.leaves: dict[int, tuple[Tensor, Tensor | None]] = {}
        self.shares = set[Value]()
        self.shown: dict[Value, Tensor] = {}
        self.unread: dict[int, Tensor] = {}

    def begun(self, loss: Tensor) -> Tensor:
        """With what backward begins at a loss."""
        k = self.job.micro_batches
        return self._scaled(ops.full_like(loss, 1.0 / k) if k > 1 else ops.ones_like(loss))

    def share(self, g: Tensor) -> Tensor:
        """The share of a gradient that the program gives. What code that backward runs makes of a share is one."""
        k, known = self.job.micro_batches, g if g.value in self.shares else self.shown.get(g.value)
        return known if known is not None else self._scaled(ops.mul(g, 1.0 / k) if k > 1 else g)

    def _scaled(self, g: Tensor) -> Tensor:
        start = g if self.scale is None else self._times(g, self.scale[0])
        if self.job.micro_batches > 1 or self.scale is not None:
            self.shares.add(start.value)
        return start

    def read(self, leaf: Tensor) -> Tensor | None:
        """A leaf's `.grad` as the program sees it: whole, except in code that backward runs."""
        if not here.backward and leaf._grad is not None:
            self.unread.pop(id(leaf), None)
            leaf._grad = self._whole(leaf._grad)
        return leaf._grad

    def _whole(self, share: Tensor) -> Tensor:
        if share.value not in self.shares:
            return share
        k, before = self.job.micro_batches, here.grad
        here.grad = True  # it may be differentiated again
        try:
            whole = share if k == 1 else ops.mul(share, float(k))
            whole = whole if self.scale is None else self._times(whole, self.scale[1])
        finally:
            here.grad = before
        self.shares.remove(whole.value)
        self.shown[whole.value] = share
        return whole

    def given(self, leaf: Tensor) -> None:
        """The program, or backward, sets a leaf's `.grad`, which begins anew in each launch, and in the trace."""
        self.leaves.setdefault(id(leaf), (leaf, leaf._grad))

    def add(self, leaf: Tensor, g: Tensor) -> None:
        """Add what backward found to a leaf's `.grad`, in that layout; in place if the program holds it, as eagerly."""
        held = leaf._grad if id(leaf) in self.leaves else None
        if held is not None and held is not self.unread.get(id(leaf)) and not here.grad and leaf.node is None:
            hooks.overwriting(OPS["add"])(held, g if held.value in self.shares else self._whole(g))
            return
        self.given(leaf)
        total = g if held is None else ops.add(self.share(held), g)
        own = ops.clone(total) if total.value is None else of_value(total.value, total.spec)
        own.node, own._requires_grad = total.node, total._requires_grad
        leaf._grad = self.unread[id(leaf)] = own

    def of(self, leaf: Tensor) -> Tensor | None:
        """The share of a leaf's gradient, as backward found it, or as the program has changed or set it."""
        g = leaf._grad
        if g is None or id(leaf) not in self.leaves:
            return None
        return self.share(ops.clone(g) if g.value is None else g)

    def replaced(self) -> list[Tensor]:
        """The shares that the program was shown, and put something else in the place of."""
        kept = {leaf._grad.value for leaf, _ in self.leaves.values() if leaf._grad is not None}
        return [share for v, share in self.shown.items() if v not in kept]
