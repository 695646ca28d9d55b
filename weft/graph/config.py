"""What a graph is asked for, in OneFlow's spelling: `self.config.set_gradient_accumulation_steps(4)`."""

from __future__ import annotations

from weft.compiler.options import Options
from weft.core.errors import GraphError


class GraphConfig:
    """Read when the graph is compiled; later changes are refused."""

    def __init__(self) -> None:
        self.training = False
        self._micro_batches = 1
        self._frozen = False

    def set_gradient_accumulation_steps(self, steps: int) -> None:
        """Cut the inputs into so many micro-batches, and update once, by the mean of their gradients.

        Outputs carry one entry for each.
        """
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise GraphError(
                f"set_gradient_accumulation_steps({steps!r}): the number of micro-batches is an int of at least 1"
            )
        if self._frozen:
            raise GraphError("the graph is compiled already; set the number of micro-batches in __init__")
        self._micro_batches = steps

    def options(self) -> Options:
        self._frozen = True
        return Options(micro_batches=self._micro_batches)

    def __repr__(self) -> str:
        steps = f", gradient_accumulation_steps={self._micro_batches}" if self._micro_batches > 1 else ""
        return f"(CONFIG:config:GraphConfig(training={self.training}{steps}))"
