"""Calls made up at random, of every public function that torch has too: what Weft does with them beside torch.

    python -m bench.fuzz [calls] [seed]

Of each call there are nine ends. `same`: both answer alike. `refused`: both refuse, Weft with a named error that is
torch's builtin one as well. Then what should not be but for the REASONS below: `wide`: torch's parser refuses the types
of the arguments, Weft answers; `lax`: torch refuses something else, Weft answers; `strict`: the other way round;
`other`: both answer, differently; `memory`: alike, but one of the results shares an operand's memory; `class`: who
catches torch's error doesn't catch Weft's. And what must not be, `raw`: an error that isn't one of Weft's.
"""

from __future__ import annotations

import inspect
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import torch

import weft as flow
from weft.api import names, table
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, WeftError
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


# why an end is what it is, and of which functions
WORDS_OF: Final = {
    ("lax", "whole numbers, bools or a second dtype are taken as floats, or promoted, as other functions do it"): """
        vander
        abs_ absolute_ adaptive_max_pool1d addcdiv addcdiv_ addmm binary_cross_entropy
        binary_cross_entropy_with_logits chain_matmul cholesky_solve corrcoef cov cumulative_trapezoid dist
        fake_quantize_per_channel_affine float_power_ frobenius_norm glu gradient histc histogram ifft isclose
        isin kl_div linspace logcumsumexp logspace lp_pool1d lp_pool2d masked_scatter matrix_norm max_unpool1d
        max_unpool2d mse_loss nanmean nanmedian nanquantile nansum ndtri new_tensor norm normalize one_hot
        pdist polar prelu quantile renorm round rsub soft_margin_loss sub subtract take take_along_dim
        tensordot trace trapezoid unique_consecutive vector_norm add_ sub_ subtract_
    """,
    ("lax", "OneFlow's: masks of whole numbers, in its order"): """
        masked_fill masked_fill_ masked_select where
    """,
    ("lax", "samples without channels, or with more dimensions in front, are pooled alike"): """
        avg_pool3d
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d_with_indices adaptive_max_pool3d
        adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices avg_pool1d
        avg_pool2d channel_shuffle local_response_norm max_pool1d max_pool1d_with_indices max_pool2d
        max_pool2d_with_indices max_pool3d max_pool3d_with_indices
    """,
    ("lax", "torch took these away, and OneFlow or older programs have them"): """
        eig solve
    """,
    ("lax", "the answer is what the formula gives, where torch asks for more form"): """
        batch_norm block_diag broadcast_shapes cholesky_inverse clamp_max_ clip_ cross diff embedding
        fake_quantize_per_tensor_affine gaussian_nll_loss hinge_embedding_loss index_fill index_reduce
        instance_norm logsumexp multilabel_margin_loss multilabel_soft_margin_loss pairwise_distance put
        resize rot90 stft svd svdvals trapz tril_ triu unflatten unravel_index vdot
    """,
    ("strict", "a dimension that torch guesses, with a warning that it shouldn't be left out, is asked for"): """
        log_softmax softmax softmin
    """,
    ("strict", "a tensor of one element, or a bool, is no number for an option here"): """
        any conv1d squeeze
        adaptive_max_pool1d adaptive_max_pool1d_with_indices adaptive_max_pool3d amin argmin avg_pool2d
        avg_pool3d batch_norm binary_cross_entropy_with_logits bitwise_and bitwise_or bitwise_xor celu celu_
        count_nonzero cross_entropy cummax cummin cumprod diag diagonal elu_ fftn flatten group_norm
        hardshrink hardtanh_ ifftn irfftn layer_norm leaky_relu leaky_relu_ linspace logit logit_ logsumexp
        max max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
        max_pool3d_with_indices mean median mode mvlgamma mvlgamma_ nan_to_num nan_to_num_ nansum polygamma
        polygamma_ rfftn rms_norm roll scatter scatter_add scatter_add_ softplus softshrink split squeeze_ sum swapaxes
        tensordot threshold threshold_ unsqueeze var_mean
    """,
    ("strict", "of nothing, or of forms that torch's kernels happen to take, no answer is made up"): """
        combinations einsum trapezoid
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adjoint block_diag broadcast_to cholesky
        conv2d conv_transpose3d corrcoef cumulative_trapezoid diff fake_quantize_per_tensor_affine fftfreq
        fill_diagonal_ histc histogram isclose kaiser_window kl_div l1_loss logcumsumexp logdet lp_pool3d
        margin_ranking_loss matrix_norm mse_loss nanmedian nanquantile rfftfreq smooth_l1_loss
        soft_margin_loss svd tile trapz triplet_margin_loss unique_consecutive vander clamp clip
    """,
    ("other", "Weft's own names and settings; OneFlow's order of arguments or rule of means"): """
        BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
        ShortTensor gaussian_nll_loss is_anomaly_check_nan_enabled is_anomaly_enabled kl_div
        multilabel_soft_margin_loss tensor triplet_margin_loss type
    """,
    ("other", "vectors of another sign or basis, rounding of narrow floats, one info per system"): """
        solve_ex
        all any binary_cross_entropy_with_logits clip cosine_similarity cross_entropy float_power gradient
        l1_loss margin_ranking_loss mse_loss ndtri rfftfreq smooth_l1_loss soft_margin_loss svd trapezoid
        trapz unique_consecutive
    """,
    ("strict", "an out of another shape is refused, which torch resizes with a warning"): """
        arccosh asinh clamp_max copysign div erfinv expm1 floor_divide frac i0 legendre_polynomial_p less log2
        lt shifted_chebyshev_polynomial_u sinc spherical_bessel_j0 true_divide
    """,
    ("class", "torch's kernels count a tensor of too few dimensions as an index out of range; here it is a shape"): """
        addbmm adaptive_avg_pool2d avg_pool2d baddbmm baddbmm_ cross cross_entropy grid_sample group_norm index_copy
        index_reduce lp_pool2d max_unpool1d max_unpool2d max_unpool3d mv nanmedian put
    """,
    ("class", "the call is wrong twice, and the other argument is named"): """
        adaptive_max_pool2d adaptive_max_pool2d_with_indices cdist huber_loss log_softmax softmin type
    """,
    ("wide", "any iterable of sizes, truth or sequence will do; OneFlow's constructors and options; None is zero"): """
        BFloat16Tensor BoolTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor
        adaptive_avg_pool1d aminmax constant_pad_nd fftfreq flip full logsumexp max_pool1d prod renorm renorm_ resize
        rfftfreq set_anomaly_enabled sigmoid tile to true_divide unique unsafe_split unsafe_split_with_sizes zeros
        arccos einsum signbit
    """,
    ("wide", "what answers for every tensor alike, or asks only for its truth, doesn't look whether it is one"): """
        is_conj is_inference is_neg is_nonzero resolve_conj resolve_neg
    """,
    ("wide", "a list of numbers is a tensor"): """
        copy_ scalar_tensor
    """,
    ("strict", "of nothing, or by a name and a place at once, no answer is made up"): """
        add cumprod_
    """,
    ("lax", "kernels that torch lacks: of bools, complex numbers or halves"): """
        ldexp xlog1py
    """,
    ("other", "whole numbers times a fraction are floats, where torch cuts the fraction off without a word"): """
        addcmul
    """,
    ("memory", "torch marks its memory as conjugated, to be computed later"): """
        conj adjoint
    """,
    ("other", "two to a whole number is a float of the usual width"): """
        ldexp
    """,
    ("other", "torch's raw function leaves a loss unreduced whose target was broadcast"): """
        hinge_embedding_loss
    """,
}  # fmt: skip
# the same of any function, by what the two said
REASONS_SAID: Final = [
    (kind, re.compile(said), why)
    for kind, said, why in (
        ("wide", r"must be (Tensor|Number), not (int|float|bool|complex)\b", "numbers stand for tensors"),
        ("wide", r"must be \w+, not (Tensor|int|float|bool|NoneType|str)\b", "tensors stand for numbers, None for all"),
        ("wide", r"must be tuple of (ints|Tensors), not (int|Tensor)|got NoneType$", "one stands for a tuple of one"),
        ("wide", r"missing \d+ required positional|Tensor.index\(\) missing", "what has a sensible default has it"),
        ("wide", r"takes (from )?\d+.* positional", "OneFlow has places for what torch takes by name"),
        ("wide", r"received an invalid combination of arguments", "torch's overloads ask for more"),
        ("wide", r"unexpected keyword argument 'out'", "whatever makes a tensor takes a place for it"),
        ("class", r"Invalid number of data points", "the call is wrong twice, and the other argument is named"),
        ("strict", r"must be [^;]*, not Tensor|of a 0-d tensor|over a 0-d tensor", "no tensor stands for an option"),
        ("strict", r"out has shape", "an out of another shape is refused, which torch resizes with a warning"),
    )
]
REASONS: Final = {(kind, n): why for (kind, why), words in WORDS_OF.items() for n in words.split()}
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
    for place in ("linalg", "special", "fft"):
        module = getattr(flow, place)
        for name in dir(module):
            theirs = getattr(HOMES[place], name, None)
            if name not in APART and callable(theirs) and not isinstance(theirs, type):
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
    if isinstance(value, flow.Tensor):  # torch has dtypes that Weft hasn't, which some kernels give
        value = value.to_torch()
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value)


def alike(ours: Any, theirs: Any) -> bool:
    """Whether two results are equal, as far as they can be compared."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, flow.Tensor):
            return False
        data = ours.detach().to_torch()
        if data.shape != theirs.shape or data.dtype != theirs.dtype:
            return False
        if theirs.is_floating_point() or theirs.is_complex():
            return torch.allclose(data, theirs.detach(), 1e-3, 1e-4, equal_nan=True)
        return torch.equal(data, theirs)
    if isinstance(ours, flow.Tensor):
        return False
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
            if isinstance(error, TypeError) and "got multiple values" in str(error):  # Python's own, before any call
                return "refused" if refusal is not None else "strict", str(error)
            return "raw", f"{type(error).__name__}: {error}"
    if isinstance(refusal, TypeError):
        return "wide", f"{shown(ours)} FOR {refusal}"
    if refusal is not None:
        return "lax", f"{shown(ours)} FOR {type(refusal).__name__}: {refusal}"
    if not alike(ours, theirs):
        return "other", f"{shown(ours)} FOR {shown(theirs)}"
    given, result = memories([*other.args, *other.kwargs.values()]), memories(theirs)
    mine, own = memories([*call.args, *call.kwargs.values()]), memories(ours)
    if [bool(m & r) for m in given for r in result] != [bool(m & r) for m in mine for r in own]:
        return "memory", f"the result is {'no ' if any(m & r for m in given for r in result) else 'a '}copy"
    return "same", ""


def memories(value: Any) -> list[set[int]]:
    """Where each tensor in a value lies."""
    if isinstance(value, (list, tuple)):
        return [place for v in value for place in memories(v)]
    data = value.detach().to_torch() if isinstance(value, flow.Tensor) else value
    return [{data.untyped_storage().data_ptr()} - {0}] if isinstance(data, torch.Tensor) else []


def ends(n: int, seed: int = 0) -> Iterator[tuple[str, Call, str]]:
    """The end of each of n calls."""
    maker = Maker(seed)
    for _ in range(n):
        call = maker.call()
        said = str(call)  # before it is overwritten
        kind, why = end(maker.pairs[call.name], call)
        yield kind, call, f"{said}: {why}"


def unexplained(kind: str, call: Call, said: str) -> bool:
    """Whether an end needs a reason, and has none."""
    if kind in ("same", "refused") or (kind, call.name.partition(".")[2]) in REASONS or (kind, "*") in REASONS:
        return False
    return not any(of == kind and pattern.search(said) for of, pattern, _ in REASONS_SAID)


def fuzz(n: int, seed: int = 0) -> Counter[str]:
    """How many of n calls came to each end; `unexplained` are those that have no reason for it."""
    counted: Counter[str] = Counter()
    for kind, call, said in ends(n, seed):
        counted[kind] += 1
        counted["unexplained"] += unexplained(kind, call, said)
    return counted


def main() -> None:
    n, seed = (int(word) for word in (*sys.argv[1:], "1000", "0")[:2])
    counted: Counter[str] = Counter()
    for kind, call, said in ends(n, seed):
        counted[kind] += 1
        if unexplained(kind, call, said):
            counted["unexplained"] += 1
            print(kind, said.replace("\n", " ")[:300])
    print(dict(counted))


if __name__ == "__main__":
    main()
