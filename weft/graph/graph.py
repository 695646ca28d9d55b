"""nn.Graph: a program that is traced once, compiled, and then launched."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from weft import optim as optimizers
from weft.amp.scaler import GradScaler, StaticGradScaler
from weft.core import collecting
from weft.core.dispatch import here
from weft.core.errors import GraphError
from weft.core.idle import idle
from weft.core.literal import cleaned
from weft.core.log import logger
from weft.core.rank import current
from weft.core.reading import nearest
from weft.graph import saved
from weft.graph.blocks import ProxyModule
from weft.graph.compiled import Compiled
from weft.graph.config import GraphConfig
from weft.graph.oneflow_state import STEPS, training_of
from weft.graph.run import Running, ordinary
from weft.graph.scaling import Scaler
from weft.graph.shapes import share, with_dynamic_input_shape
from weft.graph.simulated_launch import imagine
from weft.graph.trace import compile_graph, settings_of
from weft.job.job import Job
from weft.job.movements import movements
from weft.job.text import folded_lines
from weft.nn.module.module import Module
from weft.optim import Optimizer, lr_scheduler
from weft.optim.lr_scheduler.scheduler import Counted
from weft.plan.usage import usage
from weft.simulator.schedule import Schedule
from weft.tensor.printing import meta_text
from weft.tensor.tensor import Tensor, of_torch

TRAINING = "-training"  # in states; no module can have these names

LOG = logger("graph")


class Graph:
    """Subclass it: modules in `__init__`, the computation in `build`; then call it like a function.

    The first call traces `build` and compiles it for tensors of these shapes. Calls return at once; reading an output
    waits for it. Parameters are shared with the eager modules.
    """

    config: GraphConfig
    numbers: dict[str, Any]
    _blocks: dict[str, ProxyModule]
    _optimizers: list[tuple[Optimizer, Any]]
    _sparse: list[Optimizer]
    _scaler: Scaler
    _compiled: Compiled | None
    _shares: Any
    _of_values: bool
    _debug_level: int

    def __init__(
        self, *, enable_get_runtime_state_dict: bool = False, debug_v_level: int = -1,
        debug_ranks: int | Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """`debug_v_level` and `debug_ranks` are those of `debug()`. `runtime_state_dict()` works without asking."""
        self.__dict__.update(
            _name=self.numbered(),
            _blocks={},
            config=GraphConfig(),
            _optimizers=[],
            _sparse=[],
            _scaler=None,
            _compiled=None,
            _shares=None,
            _of_values=False,
            _closed=False,
            _debug_level=-1,
            numbers={},
            _before=0,
        )
        self.debug(debug_v_level, ranks=debug_ranks)

    def numbered(self) -> str:
        """A numbered name for a new graph of this class: the same on every rank."""
        kind, counts = cleaned(type(self).__name__), current().resource("graph counts", lambda rank: {})
        number = counts[kind] = counts.get(kind, -1) + 1
        return f"{kind}_{number}"

    def build(self, *args: Any, **kwargs: Any) -> Any:
        raise GraphError(f"{type(self).__name__} needs a method build(self, ...) that says what it computes")

    # ---- what it is made of ------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if "_blocks" not in self.__dict__:
            raise GraphError(f"call super().__init__() first, before setting {name!r}")
        if isinstance(value, Tensor):
            raise GraphAttributeError(
                f"'{type(self).__name__}' nn.Graph is not allowed to set Tensor attribute named '{name}': a graph "
                "holds modules. Put the tensor into an nn.Module (a parameter or a buffer) and that into the graph"
            )
        if name == "config" and not isinstance(value, GraphConfig):
            raise GraphError(f"a graph's config is called, not set to {value!r}: self.config.enable_amp()")
        if isinstance(value, Module):
            if self._compiled is not None:
                raise GraphError(f"the graph is compiled already; add {name!r} in __init__")
            value = self._blocks[name] = ProxyModule(value, name)
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        text = f"'{type(self).__name__}' object has no attribute '{name}'"
        raise GraphAttributeError(text + nearest(name, dir(self)))

    @property
    def name(self) -> str:
        return self._name

    @property
    def training(self) -> bool:
        return self.config.training

    @property
    def is_compiled(self) -> bool:
        return self._compiled is not None

    def add_optimizer(self, optim: Optimizer, *, lr_sch: Any = None, is_sparse: bool = False) -> None:
        """Update the optimizer's parameters after each `loss.backward()` of `build`; then step the schedule.

        With `is_sparse`, SGD without momentum or weight decay updates of each embedding's table the rows that were
        looked up, and its gradient isn't made: ranks that hold the whole table exchange rows.

        The rate of step n follows from n: stepping the schedule by hand as well changes nothing.
        """
        if not isinstance(optim, Optimizer):
            raise GraphError(f"add_optimizer takes an optimizer of flow.optim; got {type(optim).__name__}")
        by_rows = is_sparse and optim.update_rows is not None and any(map(optim.is_by_rows, optim.param_groups))
        idle("Graph.add_optimizer(is_sparse)", is_sparse and not by_rows)
        if self._compiled is not None:
            raise GraphError("the graph is compiled already; add the optimizer in __init__")
        if isinstance(optim, optimizers.LBFGS):
            raise GraphError("add_optimizer(LBFGS): it computes the loss several times a step; call its step() eagerly")
        measured = lr_scheduler.ReduceLROnPlateau
        if lr_sch is not None and (isinstance(lr_sch, measured) or not isinstance(lr_sch, lr_scheduler.LRScheduler)):
            raise GraphError(
                f"add_optimizer(..., lr_sch={type(lr_sch).__name__}): a graph steps a schedule of "
                "flow.optim.lr_scheduler after each launch, with nothing to measure. Call the step() of any other "
                "yourself, after the launch: the graph reads the optimizer's lr anew each time"
            )
        if lr_sch is not None:
            if lr_sch.optimizer is not optim:
                raise GraphError(
                    f"add_optimizer(): {type(lr_sch).__name__} sets the rates of another optimizer than this "
                    f"{type(optim).__name__}; make it of this one"
                )
            if optim.counted is None or optim.counted.schedule is not lr_sch:
                optim.counted = Counted(lr_sch)
        self._optimizers.append((optim, lr_sch))
        if by_rows:
            self._sparse.append(optim)
        self.config.training = True

    def share_from(self, other: Graph) -> None:
        """Share the parameters and buffers of another graph, whose modules have the same names and forms. (Graphs over
        the same modules share them anyhow.) Call it before adding optimizers.

        A graph without modules shares the variables of these names when it is loaded, and they keep their values.
        """
        if not isinstance(other, Graph):
            raise GraphError(f"share_from takes a graph; got {type(other).__name__}")
        if self._compiled is not None or self._optimizers:
            raise GraphError(f"{self._name}.share_from(): call it before add_optimizer and before the first launch")
        share(self, other)
        self.__dict__["_shares"] = other

    def set_grad_scaler(self, grad_scaler: GradScaler | StaticGradScaler) -> None:
        """Scale losses, and skip steps whose gradients aren't finite; the scaler is updated automatically.

        With a dynamic scale each launch waits for the one before it.
        """
        if not isinstance(grad_scaler, (GradScaler, StaticGradScaler)):
            raise GraphError(f"set_grad_scaler takes a flow.amp.GradScaler; got {type(grad_scaler).__name__}")
        if self._compiled is not None:
            raise GraphError("the graph is compiled already; set the scaler in __init__")
        self.__dict__["_scaler"] = grad_scaler

    def state_dict(self, destination: dict[str, Any] | None = None) -> dict[str, Any]:
        """The state of every module, by its name in the graph, and of optimizers, schedules and scaler, to resume
        training."""
        self._settle()
        state: dict[str, Any] = {} if destination is None else destination
        state.update({name: block.to(Module).state_dict() for name, block in self._blocks.items()})
        trained = [part.state_dict() for part in self._training()]
        state.update({TRAINING: trained, STEPS: of_torch(torch.tensor([self._steps()]))} if trained else {})
        return state

    def _steps(self) -> int:
        """The number of training steps so far, those of a loaded state included."""
        return self._before + (0 if self._compiled is None else self._compiled.launches)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Load a state from `state_dict`, with the optimizers' states if it has any and this graph has optimizers."""
        self._settle()
        if not isinstance(state_dict, Mapping):
            raise GraphError(f"load_state_dict takes what state_dict() gave; got {type(state_dict).__name__}")
        parts, modules = self._training(), {name: block.to(Module) for name, block in self._blocks.items()}
        whole = TRAINING in state_dict
        state, trained = (state_dict, []) if whole else training_of(state_dict, modules, parts)
        unknown, missing = set(state) - set(self._blocks) - {TRAINING, STEPS}, set(self._blocks) - set(state)
        if strict and (unknown or missing):
            raise GraphError(
                f"load_state_dict: missing modules {sorted(missing)}, unexpected modules {sorted(unknown)}"
            )
        trained = trained or state.get(TRAINING, ())
        if parts and trained and len(parts) != len(trained):
            raise GraphError(
                f"load_state_dict: the state is of {len(trained)} optimizers, schedules and scalers, and this graph "
                f"has {len(parts)}. Leave {TRAINING!r} out of it to load the modules alone"
            )
        for name, module in modules.items():
            if name in state:
                module.load_state_dict(state[name], strict=strict)
        for part, its in zip(parts, trained, strict=False):
            part.load_state_dict(its)
        if parts and STEPS in state:
            self.__dict__["_before"] += int(state[STEPS]) - self._steps()

    def runtime_state_dict(self, *, with_eager: bool = True) -> dict[str, Any]:
        """The compiled graph of this rank: its plan, and its parts of the variables. Each rank saves its own.

        Without `with_eager`, parameters and buffers of the graph's modules are left out: the graph that loads the state
        has such modules, and their values."""
        return saved.state_of(self, with_eager)

    def load_runtime_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a compiled graph from `runtime_state_dict()`, without tracing and compiling: `build` isn't called, and
        no modules are needed. `graph.numbers` holds the numbers that each launch reads, such as learning rates."""
        self.__dict__["_compiled"] = saved.load(self, state)

    def _training(self) -> list[Any]:
        """The optimizers, each followed by its schedule, and the scaler."""
        parts = [part for pair in self._optimizers for part in pair]
        return [part for part in (*parts, self._scaler) if part is not None]

    def _settle(self) -> None:
        if self._compiled is not None:
            self._compiled.running.vm.sync()

    # ---- calling -------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if here.trace is not None:
            here.trace.attributes.others.update(settings_of(self))
            return self.build(*args, **kwargs)  # inside another graph's build it is inlined
        if self._closed:
            raise GraphError(f"{self._name} was closed")
        if torch.is_inference_mode_enabled():
            with ordinary():
                return self(*args, **kwargs)
        compiled = self._compiled
        if compiled is None:
            self.compile(*args, **kwargs)
            compiled = self._need()
        return compiled(args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Trace and compile for arguments of this form, without launching."""
        if self._compiled is None:
            start = time.perf_counter()
            with collecting.paused(), ordinary():
                self.__dict__["_compiled"] = compile_graph(self, args, kwargs)
            took = f"{self._name}: compiled in {time.perf_counter() - start:.3f} s"
            LOG.info("%s, %d ops", took, len(self.job.nodes))
            if LOG.isEnabledFor(logging.DEBUG):
                LOG.debug("%s: %s", self._name, self.passes())
            if self._debug_level >= 0:
                said = [f"{took}\n{self.passes()}", repr(self), self.job, self.plan]
                print(*said[: self._debug_level + 2], sep="\n", flush=True)

    def debug(
        self, v_level: int = -1, *, ranks: int | Sequence[int] | None = None, max_py_stack_depth: int = 2,
        only_user_py_stack: bool = True, op_repr_with_py_stack: bool = False,
    ) -> None:  # fmt: skip
        """When the graph is compiled, print its blocks and the time of each pass; from level 1 also the job, from 2
        also the plan, from 3, first, what each pass changed of the job.

        On rank 0, or on `ranks` (-1: all). A negative level prints nothing.
        """
        if not isinstance(v_level, int):
            raise GraphError(f"debug(v_level={v_level!r}): a level is an int, -1 to 3")
        idle("Graph.debug(max_py_stack_depth)", max_py_stack_depth != 2)
        idle("Graph.debug(only_user_py_stack)", not only_user_py_stack)
        idle("Graph.debug(op_repr_with_py_stack)", op_repr_with_py_stack)
        chosen = (0,) if ranks is None else (ranks,) if isinstance(ranks, int) else tuple(ranks)
        if not all(isinstance(rank, int) for rank in chosen):
            raise GraphError(f"debug(ranks={ranks!r}): a rank, several, or -1 for all")
        self.__dict__["_debug_level"] = v_level if -1 in chosen or current().index in chosen else -1

    def _compile(self, *args: Any, **kwargs: Any) -> Any:
        """`compile`, and return outputs filled with zeros."""
        self.compile(*args, **kwargs)
        return self._need().blank()

    @staticmethod
    def trace(func: Callable[..., Any]) -> Graph:
        """Make a graph of a function, its `build`: `step = nn.Graph.trace(f); step(x)`."""
        if not inspect.isfunction(func):
            raise GraphError(f"Graph.trace takes a function; got {type(func).__name__}: {func!r:.60}")
        return type(func.__name__, (Graph,), {"build": staticmethod(func)})()

    with_dynamic_input_shape = staticmethod(with_dynamic_input_shape)

    def close(self) -> None:
        """Finish the launches in flight and end the graph's threads."""
        compiled, self.__dict__["_closed"] = self._compiled, True
        if compiled is not None:
            compiled.close()

    # ---- looking at it -------------------------------------------------------------------------------------

    def _need(self) -> Compiled:
        if self._compiled is None:
            raise GraphError(
                f"{self._name} isn't compiled yet; call it once, or call .compile(...) with example arguments"
            )
        return self._compiled

    @property
    def running(self) -> Running:
        """The runtime: registers, chains, the executor."""
        return self._need().running

    @property
    def job(self) -> Job:
        """The logical graph after the passes; `print(graph.job)` shows it, long lists folded, and `weft.job.show` all
        of it."""
        return self._need().lowered.job

    @property
    def plan(self) -> Any:
        """What this rank runs: tasks, registers, streams."""
        return self._need().plan()

    def source(self) -> str:
        """The chains of this rank as Python functions. A chain's function is generated when it first runs."""
        compiled = self._need()
        tasks = compiled.lowered.plan.tasks
        binders = compiled.running.binders
        return "\n\n".join(binders[t.id].source.text for t in tasks if t.id in binders)

    def memory(self) -> str:
        """A launch's memory on this rank: registers, the chains' arenas, and what acts allocate. It is known once the
        graph is compiled."""
        return str(usage(self.plan))

    def explain(self) -> str:
        """The data movements between ranks in a launch, with lines of the program, and why layouts were chosen."""
        return movements(self.job, self._need().lowered.options.links)

    def schedule(self, durations: Mapping[str, float] | None = None) -> Schedule:
        """The simulated schedule of a launch on all ranks: `print` it, or write its `.svg()` to a file.

        `durations` gives the time of an act, by the chain's name in the plan; without them, forward and the gradients
        of inputs and of weights take one unit each.
        """
        return imagine(self._need().lowered, durations)

    def passes(self) -> str:
        """The compiler's passes: the time of each, and the number of nodes before and after."""
        return "\n".join(map(str, self.job.passes))

    def report(self) -> str:
        """Which actors wait for which registers, as text."""
        return self._need().running.executor.report()

    @property
    def _graph_proto(self) -> str | None:
        """The logical graph as text, where OneFlow has a protocol buffer; None before it is compiled."""
        return None if self._compiled is None else str(self.job)

    _full_graph_proto = _compiled_graph_proto = _graph_proto

    @property
    def _config_proto(self) -> str:
        return self.config.proto

    def _shallow_repr(self) -> str:
        return f"(GRAPH:{self._name}:{type(self).__name__})"

    def __repr__(self) -> str:
        ops: dict[str, list[str]] = {}
        lines = [f"{self._shallow_repr()}: (", f"  {self.config!r}"]
        if self._compiled is not None:
            for node, line in folded_lines(self._compiled.lowered.job):
                ops.setdefault(node.scope, []).append(f"(OPERATOR: {line})")
            lines += [f"  (INPUT:{name}:{meta_text(t)})" for name, t in self._compiled.examples]
        for block in self._blocks.values():
            lines += block.lines(ops, "  ")
        lines += [f"  {line}" for line in ops.get("", [])]
        return "\n".join([*lines, ")"])


class GraphAttributeError(GraphError, AttributeError):
    """An attribute that a graph doesn't have, or may not have."""
