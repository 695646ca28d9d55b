"""Declarations of ops: the kernel, layout, gradient and samples of each in one place.

    @op("m k, k n -> m n", linear="a b")
    def matmul(a: Tensor, b: Tensor) -> Tensor:      # parameters annotated Tensor are operands, the others attributes
        return torch.mm(a, b)                        # the kernel, on local torch tensors

    @matmul.grad
    def _(dy, a, b): ...                             # its parameter names say what to save

The other decorators: `grad`, `samples`, `out` (the out-variant kernel), `inplace`, `ranked` (the kernel that knows
its shard), `instead` (a composition for layouts that one kernel can't do), `layout`.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, Union, get_args, get_origin

from weft.core.dispatch import hooks
from weft.core.errors import ArgumentError
from weft.core.sbp import partial_sum
from weft.ops import notation
from weft.ops.notation import Rule

OPS: Final[dict[str, Op]] = {}

OPERAND_KINDS: Final = {
    "Tensor": "tensor",
    "Tensor | None": "optional",
    "Tensor | Scalar": "operand",
    "Scalar | Tensor": "operand",
    "Sequence[Tensor]": "tensors",
    "Sequence[Tensor | None]": "tensors",
}

Scalar = float | int | bool | complex
F = TypeVar("F")
Size = tuple[int, ...] | list[int]
REQUIRED: Final = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of an op. `kind`: tensor, operand (tensor or number), optional, tensors, or attribute."""

    name: str
    kind: str
    type: str
    default: Any
    keyword_only: bool

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True)
class Where:
    """The shards of a call, for a ranked kernel: per operand (flattened) its box and the whole shape,
    per output its box."""

    inputs: tuple[tuple[tuple[int, int], ...], ...]
    input_shapes: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[tuple[int, int], ...], ...]


OPERAND_FACTS: Final = frozenset({"shape", "shapes", "dtype", "placement", "sbp"})  # a gradient may ask for x_shape
BUILT_IN: Final = "weft.ops."
WRITTEN_LATER: Final = frozenset({"unpack", "__doc__"})


def _told(attribute: str) -> Callable[[Op, F], F]:
    """A decorator that adds to the declaration what it is given."""

    def tell(self: Op, f: F) -> F:
        self._say(**{attribute: f})
        return f

    return tell


class Op:
    """A declared op: call it, or read its declaration.

    Decorators add to the declaration while its module is imported. Assignments are refused, but for two caches, `entry`
    and `unpack`, whose functions are generated at the first call, and the docstring.
    """

    def __init__(
        self, kernel: Callable[..., Any], layout: str | None, linear: str, returns: str, reduce: str,
        view: bool, random: bool, dynamic: bool, writes: str, shape_of: str, conversion: bool, uniform: bool,
        steady: str, rejection: bool, promotes: bool, adds: str, contractions: int, strided: bool, rounds: bool,
        memory_order: str | Callable[..., str],
    ) -> None:  # fmt: skip
        self.name = self.__name__ = kernel.__name__.rstrip("_") if kernel.__name__.endswith("__") else kernel.__name__
        self.__doc__, self.__module__, self.__wrapped__ = kernel.__doc__, kernel.__module__, kernel
        self.kernel, self.notation, self.reduce = kernel, layout, reduce
        self.view, self.random, self.dynamic, self.conversion = view, random, dynamic, conversion
        self.uniform, self.rejection, self.promotes, self.rounds = uniform, rejection, promotes, rounds
        self.adds, self.contractions, self.strided, self.memory_order = adds, contractions, strided, memory_order
        self.elementwise_lists = False  # goes through its lists element by element, whatever their shapes
        self.elementwise = layout is not None and set(re.split(" *(?:,|->) *", layout)) == {"..."}
        self.params = tuple(_params(kernel))
        self.names = tuple(p.name for p in self.params)
        self.operands = tuple(i for i, p in enumerate(self.params) if p.kind != "attribute")
        self.keywords = tuple(p.name for p in self.params if p.keyword_only)
        self.lists = any(p.kind == "tensors" for p in self.params)
        self.placed = self.names.index("placement") if "placement" in self.names else None
        self.writes = tuple(self.names.index(n) for n in writes.split())
        self.steady = tuple(self.names.index(n) for n in steady.split())
        self.shape_of = shape_of  # the attribute with the output's logical shape, made local per rank
        visible, _, hidden = returns.partition("|")
        every = visible.split() + hidden.split()
        self.returns = tuple(n.rstrip("*") for n in every)
        self.differentiable = tuple(not n.endswith("*") for n in every)
        self.visible = len(visible.split())
        self.linear = tuple(tuple(g.split("+")) for g in linear.split())
        self.vjp: Callable[..., Any] | None = None
        self.saves: tuple[tuple[str, int], ...] = ()
        self.keeps_tensors = False  # whether its gradient takes operands or outputs
        self.reads_kept: Callable[[Any], bool] | None = None
        self.layout_function: Callable[..., str | Iterable[Rule]] | None = None
        self.form_function: Callable[..., Any] | None = None
        self.sample_function: Callable[..., Iterable[Any]] | None = None
        self.out_kernel: Callable[..., Any] | None = None
        self.prepare: Callable[..., Any] | None = None
        self.workspace: Callable[..., int] | None = None
        self.inplace_kernel: Callable[..., Any] | None = None
        self.ranked_kernel: Callable[..., Any] | None = None
        self.scatter: Callable[..., Any] | None = None
        self.composition: Callable[..., Any] | None = None
        self.unpack: Callable[..., Any] | None = None  # from a call's saved values to its gradient; generated
        self._say(_declared=True)

    _declared = False

    def _say(self, **said: Any) -> None:
        """A decorator adds to the declaration."""
        self.__dict__.update(said)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._declared and name not in WRITTEN_LATER:
            raise AttributeError(
                f"{self.name}.{name} = ...: an op is declared once, and its entry was generated from that. Declare "
                f"another, @op(...), or use a decorator where it is declared: @{self.name}.grad, .layout, .form, ..."
            )
        object.__setattr__(self, name, value)

    @functools.cached_property
    def entry(self) -> Callable[..., Any]:
        """The function that is generated for it, and called under its public names."""
        made = hooks.road(self)
        bound: Any = {"__call__": staticmethod(made)}
        object.__setattr__(self, "__class__", type("Op", (type(self),), bound))  # spares the frame of `__call__`
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.entry(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    # ---- the decorators ---------------------------------------------------------------

    def grad(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The gradient, in terms of public ops. Its parameter names say what to save.

        `dy` (or `d<output>`), operands, outputs, attributes, `<operand>_shape` (None for a number), and `needs`: which
        of the flattened operands want a gradient. `d<output>` is zeros where an output has no gradient, or, declared
        as `d<output>=None`, None.
        """
        gradients = self._gradient_names()
        saves = []
        for name, parameter in inspect.signature(f).parameters.items():
            operand, _, fact = name.rpartition("_")
            if name in gradients:
                saves.append(("gradient" if parameter.default is REQUIRED else "gradient or None", gradients[name]))
            elif name == "needs":
                saves.append(("needs", 0))
            elif name in self.names:
                place = self.names.index(name)
                saves.append(("operand" if place in self.operands else "attribute", place))
            elif fact in OPERAND_FACTS and operand in self.names:
                saves.append((fact, self.names.index(operand)))
            elif name in self.returns:
                saves.append(("output", self.returns.index(name)))
            else:
                raise TypeError(
                    f"{self.name}.grad asks for {name!r}; there are {[*gradients, *self.names, *self.returns]}"
                )
        keeps = any(kind in ("operand", "output") for kind, _ in saves)
        self._say(vjp=f, saves=tuple(saves), keeps_tensors=keeps, unpack=None)
        return f

    def _gradient_names(self) -> dict[str, int]:
        short = {"dy": 0} if self.visible == 1 and "dy" not in self.names else {}
        return {f"d{n}": i for i, n in enumerate(self.returns)} | short

    def element_by_element(self) -> None:
        """It goes through its lists element by element, whatever their shapes."""
        self._say(elementwise_lists=True)

    samples = _told("sample_function")
    """Rows for the generic test: `f(rand)` yields argument tuples, or (args, kwargs)."""
    layout = _told("layout_function")
    """From the shapes of the operands and the attributes, by name, to a notation or to rules."""
    form = _told("form_function")
    """From the forms of the operands (shape, dtype) and the attributes to those of the outputs; None to ask the kernel,
    which also explains what is wrong."""
    out = _told("out_kernel")
    """The kernel that writes into given memory: `f(out, *args)`, or `f((out, ...), *args)` for several outputs."""
    works_in = _told("workspace")
    """The bytes that the kernel allocates while it runs, besides its results, for operands without data."""
    prepared = _told("prepare")
    """For memory that stays: like `out`, but returns the call to make each time, (function, args, kwargs), a list of
    several, or None. Without an `out`: the kernel's bare call, for operands that have passed its checks.
    `prepared(None)`: there is no such call, though the op's family has one. With a parameter `roomy` it is told
    whether the calls may allocate more, to take less time."""
    inplace = _told("inplace_kernel")
    """The kernel that overwrites the first operand: makes `name_` and `inplace=True`."""
    ranked = _told("ranked_kernel")
    """The kernel for layouts marked `@`: `f(where, *args)`."""
    scattered = _told("scatter")
    """For a view: its base with the view's part replaced, `f(base, part, **attributes)`, in terms of public ops."""
    instead = _told("composition")
    """For global operands: a composition of public ops to use instead of this op, or NotImplemented."""
    reads = _told("reads_kept")
    """Whether a node's gradient reads its saved tensors, where that depends on the call. If not, backward may run
    through the node twice."""

    # ---- queries ----------------------------------------------------------------------------------

    @property
    def trusted(self) -> Callable[..., Any]:
        """The kernel, without the checks of one that has such a form of itself."""
        return getattr(self.kernel, "trusted", self.kernel)

    @property
    def built_in(self) -> bool:
        """Whether Weft declares it, not a program."""
        return self.__module__.startswith(BUILT_IN)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Complete positional arguments, defaults included; raises a TypeError like Python's."""
        n = len(self.params)
        if len(args) > n:
            raise TypeError(f"{self.name}() takes {n} positional arguments but {len(args)} were given")
        bound = list(args)
        for p in self.params[len(args) :]:
            if p.name in kwargs:
                bound.append(kwargs[p.name])
            elif p.required:
                raise TypeError(f"{self.name}() missing required argument {p.name}")
            else:
                bound.append(p.default)
        used = sum(p.name in kwargs for p in self.params[len(args) :])
        if used != len(kwargs):
            unknown = [k for k in kwargs if k not in self.names]
            twice = [k for k in kwargs if k in self.names[: len(args)]]
            raise TypeError(
                f"{self.name}() got an unexpected argument {unknown[0]!r}"
                if unknown
                else f"{self.name}() got several values for argument {twice[0]!r}"
            )
        return tuple(bound)

    def requests(self, outs: Sequence[Any], args: Sequence[Any], roomy: bool = False) -> list[Any]:
        """The calls, (function, args, kwargs), to make each time for memory that stays; empty if there are none."""
        if self.prepare is None:
            return []
        found = self.prepare(*outs, *args, **({"roomy": True} if roomy and self._knows_roomy else {}))
        return found if isinstance(found, list) else [found] if found else []

    @functools.cached_property
    def _knows_roomy(self) -> bool:
        return self.prepare is not None and "roomy" in inspect.signature(self.prepare).parameters

    def compute(self, args: Sequence[Any], kernel: Callable[..., Any] | None = None) -> Any:
        """What the kernel, or another one of the op, returns for complete arguments."""
        n = len(args) - len(self.keywords)
        return (kernel or self.kernel)(*args[:n], **dict(zip(self.keywords, args[n:], strict=True)))

    def rules(
        self, args: tuple[Any, ...], shapes: tuple[tuple[int, ...], ...], outputs: tuple[tuple[int, ...], ...]
    ) -> tuple[Rule, ...]:
        """Every legal layout on one axis. `args` has shapes in place of tensors; `shapes` are the same, flattened."""
        described = self.described(args)
        found = [notation.whole(len(shapes), len(outputs))]
        if isinstance(described, str):
            # one element needs no split, unless it is written in place or created with one
            least = 1 if self.writes or self.placed is not None else 2
            found.extend(notation.rules(described, shapes, outputs, self.reduce, least)[1:])
        elif described is not None:
            found.extend(described)
        groups, places = [], self.operand_indices(args)
        for group in self.linear:
            members = tuple(place for name in group for place in places.get(name, ()))
            if members and all(places.get(name) for name in group):
                groups.append(members)
        # moving elements is legal for every kind of partial
        for partial in notation.partials.values() if self.view else (partial_sum,):
            found.extend(notation.linear(tuple(groups), len(shapes), len(outputs), partial))
        return tuple(dict.fromkeys(found))

    def described(self, args: tuple[Any, ...]) -> str | Iterable[Rule] | None:
        """The declared layout: a notation for the tensors of this call, rules, or None."""
        described = self.layout_function(*args) if self.layout_function else self.notation
        return self._present(described, args) if isinstance(described, str) else described

    def _present(self, text: str, args: tuple[Any, ...]) -> str:
        return notation.present(text, tuple([self._given(i, args[i]) for i in self.operands]))

    def _given(self, i: int, value: Any) -> int:
        """How many tensors, which shapes stand for, a parameter has."""
        if self.params[i].kind == "tensors":
            return sum(v is not None for v in value)
        return int(isinstance(value, tuple))

    def products(
        self, args: tuple[Any, ...], shapes: tuple[tuple[int, ...], ...], outputs: tuple[tuple[int, ...], ...]
    ) -> int:
        """The number of elements, or of multiplications, of a call: its cost grows with it."""
        described = self.described(args)
        if not isinstance(described, str):
            described = self._present(self.notation, args) if self.notation else None
        if described is not None:
            return self.contractions * notation.products(described, shapes, outputs)
        return max(map(math.prod, (*shapes, *outputs)), default=0)

    def operand_indices(self, args: tuple[Any, ...]) -> dict[str, tuple[int, ...]]:
        """Which flattened operands each parameter has. `args` has shapes in place of tensors."""
        places, at = {}, 0
        for i in self.operands:
            count = self._given(i, args[i])
            places[self.names[i]] = tuple(range(at, at + count))
            at += count
        return places


def op(
    layout: str | None = None, *, linear: str = "", returns: str = "y", reduce: str = "sum", view: bool = False,
    random: bool = False, dynamic: bool = False, writes: str = "", shape_of: str = "",
    conversion: bool = False, uniform: bool = False, steady: str = "", rejection: bool = False, promotes: bool = False,
    adds: str = "", contractions: int = 1, strided: bool = False, rounds: bool = False,
    memory_order: str | Callable[..., str] = "",
) -> Callable[[Callable[..., Any]], Op]:  # fmt: skip
    """Declare an op.

    layout     axis notation (`ops/notation.py`); None with no `.layout` function: whole operands only
    linear     groups of operands that a partial sum passes through: "a b" one at a time, "a+b" together
    returns    output names; those after `|` are for the gradient only; `*` marks what has no gradient
    reduce     how outputs that lack a split axis combine: sum, max or min
    view       the output shares memory with the first operand
    random     draws from the generator; dynamic: the output's shape depends on data
    rounds     its results on integers are rounded, so that parts of a sum aren't such of the result
    rejection  how many random numbers it draws depends on their values
    writes     operands that the kernel overwrites
    shape_of   the attribute that holds the output's logical shape
    conversion between local and global, or between layouts: done by boxing, not by a kernel
    steady     operands on whose values the gradient doesn't depend: second derivatives are zeros, not None, as those of
               torch's piecewise linear ops
    uniform    operands of one floating dtype give outputs of that dtype, and the notation has all their axes
    promotes   the kernel takes operands of several floating dtypes, and the gradient of each is cast to its dtype; not
               needed for ops of two operands that may be numbers
    adds       the op whose result on the other operands it adds to the first, which it may overwrite
    contractions how many products over all axes of the notation it computes: a measure of time
    strided    its `out` copies into the given memory, which may have any strides
    memory_order of its results, or a function of the arguments that says it: "first" or "x" as that operand's,
               "first in rows" if its rows and those of the next two are contiguous, "channels_last of any", "of all" or
               "of x" with channels innermost if they are so in any operand, all of them or that one, "... on CPUs", and
               contiguous elsewhere, "contiguous", "meta" as the kernel makes them of meta tensors; else elementwise
               ones as their operands, others contiguous
    """

    def declare(kernel: Callable[..., Any]) -> Op:
        declared = Op(
            kernel, layout, linear, returns, reduce, view, random, dynamic, writes, shape_of, conversion, uniform,
            steady, rejection, promotes, adds, contractions, strided, rounds, memory_order,
        )  # fmt: skip
        assert declared.name not in OPS, f"{declared.name} is declared twice"
        declared._say(__module__=_declaring() or kernel.__module__)
        OPS[declared.name] = declared
        return declared

    return declare


def _declaring() -> str:
    """The file that declares an op now, perhaps through a helper of another file."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    name = "" if frame is None else frame.f_globals.get("__name__", "")
    return name if name.startswith(BUILT_IN) else ""


def _params(kernel: Callable[..., Any]) -> Iterable[Param]:
    for p in inspect.signature(kernel).parameters.values():
        assert p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY), f"{kernel.__name__}: no *args in a declaration"
        # without `from __future__ import annotations`, annotations are types, not names
        text = p.annotation
        if text is p.empty:
            raise ArgumentError(
                f"{kernel.__name__}(): parameter '{p.name}' needs a type, which says what it is: "
                f"{p.name}: Tensor is an operand; {p.name}: int, float, bool, str or the like is an attribute"
            )
        text = written(text)
        yield Param(p.name, OPERAND_KINDS.get(text, "attribute"), text, p.default, p.kind is p.KEYWORD_ONLY)


def positional(*rows: tuple[str, str, Any], gives: str = "Any") -> inspect.Signature:
    """A signature of positional parameters: their names, types and defaults."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [inspect.Parameter(n, kind, annotation=t, default=d) for n, t, d in rows], return_annotation=gives
    )


def written(annotation: Any) -> str:
    """An annotation as it is written, without modules."""
    if isinstance(annotation, str):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType):
        return " | ".join(map(written, get_args(annotation))).replace(str(Scalar), "Scalar")
    if annotation in (None, types.NoneType):
        return "None"
    return re.sub(r"\b(?:\w+\.)+", "", inspect.formatannotation(annotation))
