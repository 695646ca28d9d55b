"""A graph's settings, with OneFlow's names: `self.config.set_gradient_accumulation_steps(4)`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from weft.amp import autocast
from weft.compiler.options import Options
from weft.core.errors import GraphError
from weft.core.idle import idle
from weft.core.reading import nearest
from weft.graph.hints import named, taken

AHEAD: Final = Options().ahead  # launches that have inputs and outputs in registers at a time
HINTS: Final = named("config.")  # OneFlow's optimizations, which need no setting here
PROTO: Final = named("config.proto.")


class Proto(str):
    """The settings as text, where OneFlow has a protocol buffer; its setters are taken without effect."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name in PROTO:
            return partial(taken, f"config.proto.{name}")
        raise AttributeError(
            f"config.proto is text here, without {name!r}; a graph's settings are its config's own: {', '.join(OWN)}"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)(value)


class GraphConfig:
    """Read when the graph is compiled; later changes are refused."""

    def __init__(self) -> None:
        self.training = False
        self._micro_batches = 1
        self._amp: tuple[bool, Any] = (False, None)
        self._shard_min_size: int | None = None
        self._zero_stage = 0
        self._auto_parallel = False
        self._zero_bubble = False
        self._memory_budget = 0
        self._inductor = False
        self._ahead = AHEAD
        self._frozen = False

    def enable_auto_parallel(self, mode: bool = True) -> None:
        """Choose the layouts of all ops together by a cost model of computation and movement. The layouts of inputs,
        parameters, outputs and `to_global` stay as they are. `graph.explain()` shows what was chosen."""
        self._auto_parallel = self._switch("enable_auto_parallel", mode)

    def set_memory_budget(self, bytes: int) -> None:
        """Limit a rank's memory for the graph: parameters, states, inputs, and what a launch takes besides
        (`graph.memory()`). Forward values are recomputed in backward as needed, the cheapest first, and what is held
        at the peak is computed in slices; `graph.explain()` shows which. A module's `activation_checkpointing` asks
        for recompute by hand."""
        self._memory_budget = self._count("set_memory_budget(bytes)", bytes, "a whole number of bytes above 0")

    def enable_inductor(self, mode: bool = True) -> None:
        """Fuse runs of elementwise ops and reductions to one kernel by torch's Inductor, where that is faster: each run
        is compiled and measured once, which takes seconds. It needs a C++ compiler. Results are those of the ops up to
        rounding; a plan shows a run as one `fused` call, with the calls within it."""
        self._inductor = self._switch("enable_inductor", mode)

    def enable_amp(self, mode: bool = True, *, dtype: Any = None) -> None:
        """Trace `build` under `autocast`: matmuls in a 16-bit dtype, by default each device's own."""
        mode = self._switch("enable_amp", mode)
        if dtype is not None:
            autocast("cpu", dtype)  # refuses other dtypes
        self._amp = mode, dtype

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name in HINTS:
            return partial(taken, f"config.{name}")
        raise AttributeError(_unknown(name))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in SET and not name.startswith("_"):
            if name in ASKED:
                raise GraphError(f"config.{name} is called, not set: self.config.{name}({value!r})")
            raise AttributeError(_unknown(name))
        if name == "training" and not isinstance(value, bool):
            raise GraphError(f"config.training = {value!r}: it is True or False")
        super().__setattr__(name, value)

    def _still_open(self, what: str) -> None:
        if self._frozen:
            raise GraphError(f"the graph is compiled already; call config.{what} in __init__")

    def _switch(self, name: str, mode: Any) -> bool:
        """An option's mode. What else is given was meant for another parameter, `enable_zero(3)` say."""
        self._still_open(f"{name}()")
        if not isinstance(mode, bool):
            raise GraphError(
                f"config.{name}({mode!r}): the first argument says whether, True or False; name the others"
            )
        return mode

    def _count(self, what: str, value: Any, says: str) -> int:
        self._still_open(what)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise GraphError(f"config.{what} takes {says}; got {value!r}")
        return value

    def set_gradient_accumulation_steps(self, steps: int) -> None:
        """Split the inputs into so many micro-batches, and update once, by the mean of their gradients.

        Outputs have one entry for each.
        """
        what = "set_gradient_accumulation_steps(steps)"
        self._micro_batches = self._count(what, steps, "the number of micro-batches, an int of at least 1")

    def enable_zero(
        self, mode: bool = True, *, stage: int = 2, shard_min_size: int = 1024, shard_restore_level: int = 1
    ) -> None:
        """ZeRO: shard trained parameters of `shard_min_size` elements or more, and their optimizer states, over
        data-parallel ranks.

        Stage 1 shards the optimizer's states; gradients are reduce-scattered when all are there. Stage 2 shards the
        gradients, too: each bucket is scattered as soon as backward has made it. In stage 3 parameters are whole only
        while they are read: prefetched one bucket ahead, freed, and gathered again for backward. In all stages the
        parameters are sharded between launches; eager reads move them as needed.
        """
        mode = self._switch("enable_zero", mode)
        given, fits = (stage, shard_min_size, shard_restore_level), (range(1, 4), range(sys.maxsize), range(3))
        if any(type(value) is not int or value not in some for value, some in zip(given, fits, strict=True)):
            raise GraphError(
                f"enable_zero(stage={stage!r}, shard_min_size={shard_min_size!r}, shard_restore_level="
                f"{shard_restore_level!r}): the stages are 1, 2 and 3, the least size is a number of elements, the "
                "levels are 0, 1 and 2"
            )
        idle("config.enable_zero(shard_restore_level)", mode and shard_restore_level != 1)
        self._shard_min_size = max(shard_min_size, 1) if mode else None
        self._zero_stage = stage if mode else 0

    @property
    def shard_min_size(self) -> int | None:
        """From how many elements on ZeRO shards a parameter; None without ZeRO."""
        return self._shard_min_size

    def set_outputs_buffer_size(self, value: int = 2) -> None:
        """Set how many launches have their inputs and outputs in registers at a time: how far launches run ahead of
        the readers of their outputs. An output is a separate tensor in any case."""
        self._ahead = self._count("set_outputs_buffer_size(value)", value, "a number of launches, 1 or more")

    def enable_zero_bubble(self, mode: bool = True) -> None:
        """Fill a pipeline's bubbles with the gradients of weights, which no other stage waits for. No stage keeps more
        micro-batches than the first one does anyway."""
        self._zero_bubble = self._switch("enable_zero_bubble", mode)

    def set_zero_redundancy_optimizer_mode(self, mode: str = "distributed_split") -> None:
        """OneFlow's older name for `enable_zero(stage=1)`."""
        if mode not in ("distributed_split", "non_distributed"):
            raise GraphError(f"set_zero_redundancy_optimizer_mode({mode!r}): distributed_split or non_distributed")
        self.enable_zero(mode == "distributed_split", stage=1)

    def casting(self) -> contextlib.ExitStack:
        """The context in which `build` is traced."""
        stack, (mode, dtype) = contextlib.ExitStack(), self._amp
        for kind in ("cpu", "cuda") if mode else ():
            stack.enter_context(autocast(kind, dtype))
        return stack

    def options(self) -> Options:
        self._frozen = True
        return Options(
            micro_batches=self._micro_batches, auto_parallel=self._auto_parallel, zero_bubble=self._zero_bubble,
            zero=self._zero_stage, memory_budget=self._memory_budget, inductor=self._inductor, ahead=self._ahead,
        )  # fmt: skip

    @property
    def proto(self) -> Proto:
        return Proto(repr(self))

    def __repr__(self) -> str:
        steps = f", gradient_accumulation_steps={self._micro_batches}" if self._micro_batches > 1 else ""
        amp = ", amp=True" if self._amp[0] else ""
        zero = f", zero=True, stage={self._zero_stage}" if self._zero_stage else ""
        zero += ", zero_bubble=True" if self._zero_bubble else ""
        zero += ", inductor=True" if self._inductor else ""
        chosen = ", auto_parallel=True" if self._auto_parallel else ""
        chosen += f", memory_budget={self._memory_budget}" if self._memory_budget else ""
        chosen += f", outputs_buffer_size={self._ahead}" if self._ahead != AHEAD else ""
        return f"(CONFIG:config:GraphConfig(training={self.training}{steps}{amp}{zero}{chosen}))"


SET: Final = ("training",)
OWN: Final = tuple(name for name, value in vars(GraphConfig).items() if callable(value) and not name.startswith("_"))
ASKED: Final = (*OWN, *HINTS, "proto")


def _unknown(name: str) -> str:
    near = nearest(name, ASKED)
    return f"a graph's config has no {name!r}" + (near or (
        f"; it has {', '.join(OWN)}, and, taken without effect because the compiler decides by itself, "
        f"{', '.join(HINTS)}"
    ))  # fmt: skip
