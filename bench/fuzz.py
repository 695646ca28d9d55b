"""Calls made up at random, of every public function that torch has too: what Weft does with them beside torch.

    python -m bench.fuzz [calls] [seed]

Of each call there are seven ends. `same`: both answer alike. `refused`: both refuse, Weft with a named error that is
torch's builtin one as well. Then what should not be, but for the reasons that `tests/functional/test_beside_torch.py`
gives: `lax`: torch refuses, Weft answers; `strict`: the other way round; `other`: both answer, differently; `class`:
who catches torch's error doesn't catch Weft's; and what must not be, `raw`: an error that isn't one of Weft's.
"""

from __future__ import annotations

import inspect
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import torch

import weft as flow
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, WeftError
from weft.functional import fft as ffts
from weft.functional import linalg, names, special, table
from weft.ops import OPS
from weft.tensor.tensor import of_torch
from weft.testing import registry
from weft.testing.layouts import replaced

Function = Callable[..., Any]
HOMES: Final = {"flow": torch, "neural": torch.nn.functional, "tensor": torch.Tensor, "linalg": torch.linalg,
                "special": torch.special, "fft": torch.fft}  # fmt: skip
# what draws, or shows memory that nobody wrote; what changes the program as a whole; what goes by addresses or files
WORDS: Final = """
    empty empty_like empty_strided empty_permuted new_empty new_empty_strided new rand rand_like randn randn_like
    randint randint_like randperm normal bernoulli bernoulli_ multinomial poisson binomial dropout alpha_dropout
    dropout_ alpha_dropout_ feature_dropout feature_alpha_dropout dropout1d dropout2d dropout3d rrelu rrelu_
    gumbel_softmax normal_ uniform_ random_ exponential_ cauchy_ geometric_ log_normal_ fractional_max_pool2d
    fractional_max_pool3d seed fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices manual_seed
    initial_seed set_rng_state get_rng_state from_file from_numpy from_dlpack frombuffer load save data_ptr storage
    untyped_storage compile _assert share_memory_ record_stream register_hook backward
    register_post_accumulate_grad_hook set_printoptions set_default_dtype set_default_device set_default_tensor_type
    set_num_threads set_num_interop_threads set_flush_denormal use_deterministic_algorithms set_warn_always resize_
    set_deterministic_debug_mode set_float32_matmul_precision set_ set_grad_enabled lobpcg svd_lowrank pca_lowrank
    is_grad_enabled apply_ map_ map2_ vmap typename script cuda pin_memory is_pinned numpy __array__ spectral_norm
    resize_as_ scaled_dot_product_attention element_size get_default_dtype tolist module_load requires_grad_
"""
APART: Final = frozenset(WORDS.split())


CAUGHT: Final = (RuntimeError, IndexError, ValueError)  # what programs catch of kernels


class Call(NamedTuple):
    """One call, as Weft's tensors and dtypes."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        given = [shown(a) for a in self.args] + [f"{k}={shown(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}({', '.join(given)})"


def functions() -> dict[str, tuple[Function, Function]]:
    """Every public function that torch has, with torch's."""
    found: dict[str, tuple[Function, Function]] = {}
    for place in ("flow", "tensor", "neural"):
        for name, f in table.listed(place):
            if name not in APART and callable(theirs := getattr(HOMES[place], name, None)):
                found[f"{place}.{name}"] = f, theirs
    for place, module in (("linalg", linalg), ("special", special), ("fft", ffts)):
        for name in module.__all__:
            if name not in APART and callable(theirs := getattr(HOMES[place], name, None)):
                found[f"{place}.{name}"] = getattr(module, name), theirs
    return found


# ---- making calls up -------------------------------------------------------------------------------------

DTYPES: Final = (torch.float32,) * 6 + (torch.float64, torch.int64, torch.int64, torch.bool, torch.int32, torch.float16,
                                        torch.complex64, torch.uint8)  # fmt: skip
SHAPES: Final = ((2, 3), (2, 3), (3,), (2, 3, 4), (3, 3), (1, 3), (), (0,), (2, 0), (4, 5), (1,), (2, 3, 4, 5))
ODD: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1, 2, 5, -7, 2.5, -0.5, "x", "mean", (), (-1,), (0, 0), (2, 3), (1, 0), [1], (7, -7), [],
    flow.float64, flow.int64, {}, 1j, "sum", "none",
)  # fmt: skip
PLAIN: Final[dict[str, tuple[Any, ...]]] = {
    "int": (0, 1, 2, -1, 3, -3), "float": (0.5, 1.0, 2.0, 0.0, -1.0), "bool": (True, False),
    "Scalar": (1, 0.5, 2, True), "str": ("mean", "sum", "none", "x"), "DType": (flow.float32, flow.int64, flow.float64),
}  # fmt: skip
KEYWORDS: Final = (
    "dim",
    "keepdim",
    "dtype",
    "out",
    "axis",
    "other",
    "alpha",
    "end",
    "lambd",
    "value",
    "input",
    "index",
)


class Maker:
    """Calls of the functions, one after another, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pairs = functions()
        self.names = sorted(self.pairs)
        self.samples: dict[str, list[Any]] = {}

    def call(self) -> Call:
        name = self.random.choice(self.names)
        f = self.pairs[name][0]
        rows = self._rows(name)
        kwargs: dict[str, Any] = {}
        if rows and self.random.random() < 0.6:
            args = list(self._copied(*self.random.choice(rows)))
            for _ in range(self.random.choice((0, 1, 1, 2))):
                args[self.random.randrange(len(args))] = (
                    self._anything() if self.random.random() < 0.5 else self.tensor()
                )
        else:
            args = self._declared(f, kwargs)
        slip = self.random.random()
        if slip < 0.05:
            kwargs[self.random.choice(KEYWORDS)] = self._anything()
        elif slip < 0.1 and args:
            args.pop()
        if name.startswith("tensor.") and not (args and isinstance(args[0], flow.Tensor)):
            args[:1] = [self.tensor()]
        return Call(name, tuple(args), kwargs)

    def tensor(self) -> flow.Tensor:
        shape, dtype = self.random.choice(SHAPES), self.random.choice(DTYPES)
        start, total = self.random.randint(-2, 2), torch.Size(shape).numel()
        data = ((torch.arange(total) * 7 + start) % 5 + min(start, 0)).reshape(shape).to(dtype)
        return of_torch(data * 0.5 if dtype.is_floating_point and self.random.random() < 0.5 else data)

    def _anything(self) -> Any:
        kind = self.random.random()
        if kind < 0.3:
            return self.tensor()
        if kind < 0.35:
            return [self.tensor() for _ in range(self.random.randint(0, 3))]
        return self.random.choice(ODD)

    def _declared(self, f: Function, kwargs: dict[str, Any]) -> list[Any]:
        f = self.random.choice(getattr(f, "functions", (f,)))
        args: list[Any] = []
        for p in inspect.signature(f).parameters.values():
            given = p.default is p.empty or self.random.random() < 0.35
            if p.kind is p.VAR_POSITIONAL:
                args += [self._fitting(str(p.annotation)) for _ in range(self.random.randint(0, 3))]
            elif p.kind is p.KEYWORD_ONLY and given:
                kwargs[p.name] = self._fitting(str(p.annotation))
            elif p.kind is p.POSITIONAL_OR_KEYWORD:
                if not given:
                    break
                args.append(self._fitting(str(p.annotation)))
        return args

    def _fitting(self, text: str) -> Any:
        kind = self.random.choice(text.split("|")).strip()
        if self.random.random() < 0.15:
            return self._anything()
        if kind == "Tensor":
            return self.tensor()
        if "Tensor" in kind:
            return [self.tensor() for _ in range(self.random.randint(0, 3))]
        if kind in PLAIN:
            return self.random.choice(PLAIN[kind])
        if kind.startswith(("Size", "Sequence[int", "tuple[int", "list[int", "Dims")):
            return tuple(self.random.randint(-1, 3) for _ in range(self.random.randint(0, 3)))
        return None if kind == "None" else self.random.choice((1, 0, 2, -1, (2, 3), 0.5, self.tensor()))

    def _rows(self, name: str) -> list[Any]:
        if name not in self.samples:
            last = name.partition(".")[2]
            op = OPS.get(names.ALIASES.get(last, last)) or OPS.get(last.removesuffix("_"))
            fits = op is not None and not op.conversion and op.sample_function is not None
            self.samples[name] = [(op, args) for args in registry.cases(op)] if op is not None and fits else []
        return self.samples[name]

    def _copied(self, op: Any, args: Any) -> list[Any]:
        held = [of_torch(t.float() if t.dtype is torch.float64 else t.clone()) for t in registry.tensors(op, args)]
        return list(replaced(op, args, held))


# ---- both answers ----------------------------------------------------------------------------------------


def twin(value: Any) -> Any:
    """A value for torch."""
    if isinstance(value, flow.Tensor):
        return value.to_torch().clone()
    if isinstance(value, dtypes.DType):
        return value.torch
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(twin, value))
    return value


def shown(value: Any) -> str:
    if isinstance(value, (flow.Tensor, torch.Tensor)):
        return f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value)


def alike(ours: Any, theirs: Any) -> bool:
    """Whether two answers are the same, as far as they can be told."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, flow.Tensor):
            return False
        data = ours.detach().to_torch()
        if data.shape != theirs.shape or data.dtype != theirs.dtype:
            return False
        if theirs.is_floating_point() or theirs.is_complex():
            return torch.allclose(data, theirs.detach(), 1e-3, 1e-4, equal_nan=True)
        return torch.equal(data, theirs)
    if isinstance(theirs, (tuple, list)) and not isinstance(theirs, torch.Size):
        return isinstance(ours, (tuple, list)) and len(ours) == len(theirs) and all(map(alike, ours, theirs))
    if isinstance(theirs, float):
        return isinstance(ours, float) and (
            ours == theirs or ours != ours or abs(ours - theirs) < 1e-3 * abs(theirs) + 1e-4
        )
    return ours == theirs if isinstance(theirs, (bool, int, str, torch.Size)) else True


def end(pair: tuple[Function, Function], call: Call) -> tuple[str, str]:
    """How a call ends, and what there is to say of it."""
    theirs: Any = None
    refusal: Exception | None = None
    other = Call(call.name, twin(call.args), {k: twin(v) for k, v in call.kwargs.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = pair[1](*other.args, **other.kwargs)
        except Exception as error:
            refusal = error
        try:
            ours = pair[0](*call.args, **call.kwargs)
        except WeftError as error:
            if refusal is None:
                return "strict", f"{type(error).__name__}: {error}"
            builtin = next(k for k in type(refusal).__mro__ if k.__module__ == "builtins")
            # torch's other classes are its parser's, which looks at all types first, or slips of its Python
            if isinstance(error, (builtin, ArgumentError)) or builtin not in CAUGHT:
                return "refused", str(error)
            return "class", f"{type(error).__name__} for {builtin.__name__}: {error} FOR {refusal}"
        except Exception as error:
            if refusal is not None and isinstance(error, TypeError) and error.__traceback__.tb_next is None:
                return "refused", str(error)  # Python's own, of an argument that is given twice, before any call
            return "raw", f"{type(error).__name__}: {error}"
    if isinstance(refusal, TypeError):
        return "wide", f"{shown(ours)} FOR {refusal}"
    if refusal is not None:
        return "lax", f"{shown(ours)} FOR {type(refusal).__name__}: {refusal}"
    return ("same", "") if alike(ours, theirs) else ("other", f"{shown(ours)} FOR {shown(theirs)}")


def ends(n: int, seed: int = 0) -> Iterator[tuple[str, Call, str]]:
    """The end of each of n calls."""
    maker = Maker(seed)
    for _ in range(n):
        call = maker.call()
        said = str(call)  # before it is overwritten
        kind, why = end(maker.pairs[call.name], call)
        yield kind, call, f"{said}: {why}"


def fuzz(n: int, seed: int = 0) -> Counter[str]:
    """How many of n calls came to each end."""
    return Counter(kind for kind, _, _ in ends(n, seed))


if __name__ == "__main__":
    print(fuzz(int((sys.argv[1:] or ["1000"])[0]), int((sys.argv[2:] or ["0"])[0])))
