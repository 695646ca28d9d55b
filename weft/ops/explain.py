"""Error messages: from a kernel's exception, or a call that fits no signature, to an error that says what works."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, Final

import torch

from weft.core import errors
from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.errors import WeftError
from weft.core.placement import Placement
from weft.ops import out_argument
from weft.ops.blame import blamed
from weft.ops.declaration import Op, Param
from weft.ops.keywords import place_of
from weft.tensor.blob import blob_of
from weft.tensor.tensor import Tensor

NUMBERS = (int, float, bool, complex)
NUMERIC = ("Scalar", "float", "int")
CLASSES: Final[dict[str, Any]] = {  # of types that need no more than that
    "bool": bool, "str": str, "Scalar": NUMBERS, "None": NoneType, "DType": DType, "Device": Device,
    "Placement": Placement,
}  # fmt: skip
MEMORY_WORDS = ("can't allocate memory", "not enough memory", "out of memory", "Storage size calculation overflowed")

PYTHONS = (  # Python's own errors in a kernel or an adapter, which don't explain the call
    "tuple index out of range", "list index out of range", "values to unpack", "zip() argument", "x not in tuple",
    "division by zero", "is not subscriptable", "unsupported operand", "'NoneType' object",
)  # fmt: skip

ALTERNATIVES = re.compile(r"\|(?![^\[]*\])")  # the top-level bars of a union type

INNER = "The inner dimensions must agree: a[n, k] times b[k, m]; a linear weight is [m, k]"
HINTS = (  # what would work, for messages that don't say it
    ("cannot be multiplied", INNER),
    ("same reduction dim", INNER),  # the same, from shape inference
    ("must match the size of tensor", "Dimensions are aligned at the last; each pair must be equal, or one of them 1"),
    ("is invalid for input of size", "A new shape keeps the number of elements; -1 is inferred from the others"),
    ("Sizes of tensors must match", "cat() joins along one dimension; in all others the tensors must agree"),
    ("Expected p_in >= 0", "Probabilities are between 0 and 1"),
    ("Dimension out of range", "Negative dimensions count from the last"),
)


# Functions for arguments that an op of this name lacks, so that the op itself stays fast.
LONGER: Final[dict[str, Callable[..., Any]]] = {}


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()  # the default of a required argument


def missing(op: Op, args: tuple[Any, ...], overwrites: bool = False) -> Exception:
    """The error for a call of the op, or of `name_`, without its required arguments."""
    if op.name in LONGER and not overwrites:  # whose signature the caller knows
        LONGER[op.name](**{n: a for n, a in zip(op.names, args, strict=True) if a is not ABSENT})
    lacking = [p.name for p, a in zip(op.params, args, strict=True) if p.required and a is ABSENT]
    return errors.ArgumentError(
        f"{op.name}{'_' * overwrites}(): missing required argument{'s' * (len(lacking) > 1)} "
        f"{', '.join(map(repr, lacking))}\n  accepted: {signature(op, overwrites)}"
    )


def refit(
    op: Op, args: tuple[Any, ...], rest: tuple[Any, ...], more: dict[str, Any],
    run: Callable[[Op, tuple[Any, ...]], Any], overwrite: Callable[[Op, tuple[Any, ...]], Any],
) -> Any:  # fmt: skip
    """The call with aliased keywords renamed and `inplace` or `out` applied, or an ArgumentError.

    `inplace` is accepted by every op with an in-place kernel, `out` by every other op.
    """
    itself = run is overwrite

    def refused(why: str) -> Exception:
        return errors.ArgumentError(f"{op.name}{'_' * itself}(): {why}\n  accepted: {signature(op, itself)}")

    given, more = out_argument.taken(op.name, op.names, more) if not itself else ({}, more)
    if given:
        args = tuple(out_argument.typed(op.name, op.names, given, dict(zip(op.names, args, strict=True))).values())
        return out_argument.applied(op.name, given, refit(op, args, rest, more, run, overwrite), overwrite)
    if op.name in LONGER:
        if rest:
            return LONGER[op.name](*args, *rest, **more)
        return LONGER[op.name](**{n: a for n, a in zip(op.names, args, strict=True) if a is not ABSENT}, **more)
    if taking_inplace(op) and "inplace" in more:
        more = dict(more)
        run = overwrite if more.pop("inplace") else run
    elif op.inplace_kernel is not None and len(rest) == 1 and isinstance(rest[0], bool) and not more:
        rest, run = (), overwrite if rest[0] else run  # relu(x, True): positional, after all of its own
    own = len(op.params) - len(op.keywords)
    if rest and own == 2 and "Size" in op.params[1].type and all(_is("int", n) for n in (args[1], *rest)):
        args, rest = (args[0], (args[1], *rest), *args[2:]), ()  # squeeze(0, 2): several numbers are one size
    if rest:
        n = own + (taking_inplace(op) and run is not overwrite)
        wrong = f"takes {n} positional argument{'s' * (n != 1)} but {own + len(rest)} were given"
        if n == own + len(rest):
            wrong = f"argument 'inplace' must be bool, not {describe(rest[0])}"
        raise refused(wrong)
    bound = list(args)
    for name, value in more.items():
        place = place_of(op.name, name, op.names)
        if place is None:
            raise refused(f"got an unexpected argument {name!r}")
        if bound[place] is not ABSENT and bound[place] is not op.params[place].default:
            raise refused(f"got several values for argument {op.names[place]!r}")
        bound[place] = value
    for i, p in enumerate(op.params):
        if bound[i] is ABSENT:
            if p.required:
                raise missing(op, tuple(bound), itself)
            bound[i] = p.default
    return run(op, tuple(bound))


def describe(value: Any) -> str:
    """An argument as errors show it: float32[2,3] for a tensor, itself otherwise."""
    if isinstance(value, Tensor):
        if value.spec is not None:
            return repr(value.spec)
        return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}[{','.join(map(str, value.shape))}]"
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return "[" + ", ".join(describe(v) for v in value) + "]"
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def call_text(op: Op, args: tuple[Any, ...]) -> str:
    inside = ", ".join(f"{n}: {describe(a)}" for n, a in zip(op.names, args, strict=False))
    return f"{op.name}({inside})"


def accepts(p: Param, value: Any, numbers: bool = True) -> bool:
    """Whether a value has a parameter's declared type; attributes are checked by the names in their annotation.
    `numbers`: whether a 0-d tensor is accepted for a number."""
    if p.kind == "tensor":
        return isinstance(value, Tensor)
    if p.kind == "optional":
        return value is None or isinstance(value, Tensor)
    if p.kind == "operand":
        return isinstance(value, (Tensor, *NUMBERS))
    if p.kind == "tensors":
        nones = "None" in p.type
        return isinstance(value, (list, tuple)) and all(isinstance(v, Tensor) or (nones and v is None) for v in value)
    if isinstance(value, Tensor):
        return "Tensor" in p.type or p.type == "Any" or (numbers and p.type in NUMERIC)
    return any(_is(kind.strip(), value) for kind in ALTERNATIVES.split(p.type))


def _is(kind: str, value: Any) -> bool:
    if kind in CLASSES:
        return isinstance(value, CLASSES[kind])
    match kind:
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "Size" | "Sequence[int]" | "tuple[int, ...]" | "list[int]":
            return isinstance(value, (list, tuple)) and all(
                isinstance(v, int) and not isinstance(v, bool) for v in value
            )
    # elements of other sequences aren't checked
    return not kind.startswith(("Sequence[", "list[", "tuple[")) or (
        hasattr(value, "__iter__") and not isinstance(value, str)
    )


def wrong(p: Param, value: Any) -> str:
    """Why the parameter doesn't take the value."""
    wanted = {"tensor": "tensor", "operand": "tensor or number", "optional": "tensor or None"}.get(p.kind)
    wanted = wanted or ("a sequence of tensors" if p.kind == "tensors" else p.type)
    return f"argument '{p.name}' must be {wanted}, not {type(value).__name__}"


def check_arguments(op: Op, args: tuple[Any, ...], numbers: bool = True) -> None:
    """Raise if an argument's type isn't the declared one. `numbers`: whether a 0-d tensor is accepted for a number."""
    for p, value in zip(op.params, args, strict=False):  # an update's call leaves defaults out
        if p.kind == "tensor" and isinstance(value, Tensor):
            continue
        if value is ABSENT:
            raise missing(op, args)
        if not accepts(p, value, numbers):
            number = isinstance(value, Tensor) and not value.ndim and p.type in NUMERIC
            raise errors.ArgumentError(
                f"{op.name}(): {wrong(p, value)} ({describe(value)}).\n"
                f"  accepted: {signature(op)}" + f"\n  {p.name}.item() is the number in this tensor" * number
            )


def taking_inplace(op: Op) -> bool:
    """Whether a call may give `inplace`, as the last argument or by keyword, though the op doesn't declare it."""
    return op.inplace_kernel is not None and "inplace" not in op.names


def signature(op: Op, overwrites: bool = False) -> str:
    """The signature of the op, or of `name_`, as text."""
    parts = []
    for p in op.params:
        text = f"{p.name}: {p.type}" + ("" if p.required else f" = {p.default!r}")
        if p.keyword_only and "*" not in parts:
            parts.append("*")
        parts.append(text)
    if taking_inplace(op) and not overwrites:
        parts.insert(parts.index("*") if "*" in parts else len(parts), "inplace: bool = False")
    return f"{op.name}{'_' * overwrites}({', '.join(parts)})"


def explain(op: Op, cause: Exception, args: tuple[Any, ...]) -> Exception:
    """The error to raise for a kernel's exception. Weft's own errors pass through, and so do errors from elsewhere,
    such as a signal handler that ran amid a kernel."""
    home = (getattr(op.kernel, "__module__", None) or "").partition(".")[0]
    if isinstance(cause, WeftError) or (home in errors.OURS and not errors.ours(cause)):
        return cause
    try:
        check_arguments(op, args, numbers=not isinstance(cause, TypeError))
    except WeftError as better:
        return better
    kind, message = named(cause)
    if type(cause) is IndexError and "Dimension" not in message:  # Python's own message
        message = misplaced(dict(zip(op.names, args, strict=False))) or message
    advice = hint(message)
    if kind is errors.OpError and not isinstance(cause, torch.linalg.LinAlgError):
        kind, found = blamed(op, args)
        advice += f".\n{found}" * bool(found)
    elif type(cause) is TypeError:  # some kernels raise one for a dtype
        reason, found = blamed(op, args)
        if reason is errors.DtypeError:
            kind, advice = reason, advice + f".\n{found}" * bool(found)
    if kind is errors.MissingKernelError:
        words = "{0} has no kernel for {1}: not implemented for '{2}'"
        message = KERNEL.sub(lambda m: words.format(op.name, _dtype(m[1]), m[1]), message)
        reason, found = blamed(op, args)
        advice += f".\n{found}" * (reason is errors.DtypeError and bool(found))
    if kind is errors.DeviceError:
        return apart(op, args)
    return kind(f"{message}{_reach(message, args)}\n  in {call_text(op, args)}{advice}")


def apart(op: Op, args: tuple[Any, ...]) -> errors.DeviceError:
    """The error for operands on different devices."""
    places = " and ".join(sorted({str(d) for a in args for d in _devices(a)}))
    return errors.DeviceError(
        f"operands are on {places}\n  in {call_text(op, args)}.\nMove them to one device with x.to(...)"
    )


KERNEL: Final = re.compile(r"""^"[^"]*" not implemented for '(\w+)'""")  # the kernel's name doesn't help the user


def _dtype(name: str) -> str:
    """A dtype by its name in torch's messages, such as Long."""
    tensor = getattr(torch, f"{name}Tensor", None)
    return str(tensor.dtype).removeprefix("torch.") if tensor is not None else name


def _devices(value: Any) -> Iterator[torch.device]:
    """The devices of an argument's local tensors."""
    if isinstance(value, Tensor):
        data = blob_of(value).data
        if data is not None:
            yield data.device
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _devices(v)


# by the class of the exception, the first that matches
NAMED: Final[tuple[tuple[Any, type[WeftError]], ...]] = (
    (ArithmeticError, errors.OptionError),
    (IndexError, errors.IndexingError),
    (NotImplementedError, errors.MissingKernelError),
    ((TypeError, AttributeError), errors.ArgumentError),
    (RuntimeError, errors.OpError),
    (Exception, errors.OptionError),
)


def named(cause: Exception) -> tuple[type[WeftError], str]:
    """The Weft error for one of Python's or torch's, and its message."""
    message = re.split(r"\nException raised from|  \(Could this error message", str(cause))[0].strip()
    if isinstance(cause, MemoryError) or any(w in message for w in MEMORY_WORDS):
        asked = re.search(r"allocate (\d+) bytes", message)
        size = f"{int(asked[1]) / 2**30:.4g} GiB of " if asked else ""
        return errors.OutOfMemoryError, f"there isn't the {size}memory that this takes"
    if not isinstance(cause, RuntimeError) and any(words in message for words in PYTHONS):
        message = "its arguments don't fit together: one has fewer elements, or dimensions, than another asks for"
    return next(kind for classes, kind in NAMED if isinstance(cause, classes)), message or type(cause).__name__


DIMS: Final = ("dim", "axis", "dims", "dim0", "dim1", "dim2", "start_dim", "end_dim", "source", "destination")


def misplaced(given: dict[str, Any]) -> str:
    """The message about a dimension that the first tensor of a call lacks; empty if it has them all."""
    x = next((a for a in given.values() if isinstance(a, Tensor)), None)
    if x is None:
        return ""
    reach = max(x.ndim, 1)
    for name in DIMS:
        value = given.get(name)
        for d in value if isinstance(value, (list, tuple)) else (value,):
            if type(d) is int and not -reach <= d < reach:
                return (
                    f"Dimension out of range (expected to be in range of [{-reach}, {reach - 1}], but got {d}): "
                    f"{name} of {describe(x)}"
                )
    return "" if x.ndim else f"this takes a tensor with dimensions; got {describe(x)}, which has none"


def hint(message: str) -> str:
    return next((f".\n{h}" for words, h in HINTS if words in message), "")


def _reach(message: str, args: tuple[Any, ...]) -> str:
    """The range of the indices, if the kernel only says that one is out of range."""
    if message != "index out of range in self":
        return ""
    held = [a.blob.now for a in args if isinstance(a, Tensor) and a.dtype.name in ("int32", "int64")]
    return "".join(f": they are {int(t.min())} to {int(t.max())}" for t in held[:1] if t is not None and t.numel())
