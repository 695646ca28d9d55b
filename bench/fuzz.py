"""Random calls of every public function that torch has too, with Weft and with torch.

    python -m bench.fuzz [calls] [seed]

A call has one of nine outcomes. `same`: equal results. `refused`: both raise, and Weft's error is a subclass of torch's
builtin one. These need one of the REASONS below, each for some functions and a pattern of the two results: `wide`:
torch's parser refuses the types of the arguments, Weft computes; `lax`: torch refuses something else, Weft computes;
`strict`: torch computes, Weft refuses; `other`: both compute, with different results; `memory`: equal results, of which
one shares an operand's memory; `class`: an `except` for torch's error doesn't catch Weft's. `raw` is always a bug: an
error that isn't one of Weft's.
"""

from __future__ import annotations

import inspect
import json
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import torch

import weft as flow
from weft.api import names, table
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, WeftError
from weft.functional.tensor.conversion import TYPES
from weft.ops import OPS
from weft.tensor.tensor import of_torch
from weft.testing import registry
from weft.testing.layouts import replaced

Function = Callable[..., Any]
HOMES: Final = {"flow": torch, "neural": torch.nn.functional, "tensor": torch.Tensor, "linalg": torch.linalg,
                "special": torch.special, "fft": torch.fft}  # fmt: skip
# random or uninitialized results; settings of the whole program; addresses and files
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
TYPED: Final = " ".join(TYPES)


class Reason(NamedTuple):
    """Why calls of some functions (None: of any) whose description matches `form` may have this outcome."""

    kind: str
    names: frozenset[str] | None
    form: re.Pattern[str]
    why: str


REASONS: Final = [
    Reason(kind, frozenset(names.split()) if names else None, re.compile(form), why)
    for kind, names, form, why in (
        ("wide", "",
            r"must be (Tensor|Number), not (int|float|bool|complex)\b",
            "a number is taken for a tensor"),
        ("wide", "",
            r"must be \w+, not (Tensor|int|float|bool|NoneType|str)\b|must be torch.dtype, not",
            "a tensor is taken for a number, None for the default, any value for a bool"),
        ("wide", "",
            r"must be tuple of (ints|Tensors), not (int|Tensor|bool)|got NoneType$",
            "one value is taken for a tuple of one"),
        ("wide", "",
            r"must be (bool|str), not ",
            "any value is taken for a bool; an unused string isn't checked"),
        ("wide", "",
            r"must be (int|Number|float), not (list|tuple|dict)|"
            r"must be tuple of ints, not (list|tuple|dict|str|NoneType)|can't multiply sequence|"
            r"expected Tensor as element \d+ in argument \d+, but got (NoneType|list)",
            "any sequence of numbers is taken, and None for all"),
        ("wide", "",
            r"FOR (len\(\) of|iteration over) a 0-d tensor$|must be tuple of ints, but found element of type Tensor",
            "a 0-d tensor is taken for a size"),
        ("wide", "",
            r"missing \d+ required positional|Tensor.index\(\) missing",
            "Weft has a default where torch has none"),
        ("wide", "",
            r"takes (from )?\d+.* positional",
            "positional in OneFlow, keyword-only in torch"),
        ("wide", "",
            r"received an invalid combination of arguments",
            "a number for a tensor, a bool for a number, None for a default, `out`, or OneFlow's order of parameters"),
        ("wide", "add",
            r"argument 'input' \(position 1\) must be Tensor, not tuple",
            "OneFlow adds several"),
        ("wide", "",
            r"takes no (keyword )?arguments|"
            r"unexpected keyword argument '(out|placement|sbp|dtype|device|axis|dim|perm|keepdim|inplace|alpha)'",
            "options that Weft takes in more functions"),
        ("wide", f"""
            {TYPED} exp is_conj lgamma relu tanh arccos einsum unsafe_split_with_sizes as_tensor asarray new_tensor
            tensor
        """,
            r"argument 'equation'|argument 'split_sizes'|data must be a sequence|TensorOptions|invalid data type|"
            r"only integer tensors|must be convertible|unsupported operand",
            "OneFlow's constructors and options"),
        ("lax", """
            _fake_quantize_learnable_per_channel_affine abs_ absolute_ add addcdiv addcdiv_ addcmul addmm
            binary_cross_entropy binary_cross_entropy_with_logits cdist corrcoef cov cross_entropy cumulative_trapezoid
            dist fake_quantize_per_channel_affine fake_quantize_per_tensor_affine float_power_ frobenius_norm glu
            gradient hinge_embedding_loss histc histogram index_fill isclose isin kl_div l1_loss ldexp logcumsumexp
            logsumexp masked_fill masked_fill_ masked_scatter masked_scatter_ matrix_norm matrix_rank max_pool1d nanmean
            nanmedian nanquantile nansum ndtri norm normalize nuclear_norm one_hot pdist polar prelu put quantile renorm
            round round_ rsub smooth_l1_loss soft_margin_loss sub sub_ subtract svdvals take take_along_dim tensordot
            trace trapezoid trapz unique_consecutive vander vecdot vector_norm windows.bartlett windows.blackman
            windows.cosine windows.exponential windows.gaussian windows.general_cosine windows.general_hamming
            windows.hamming windows.hann windows.kaiser windows.nuttall xlog1py
        """,
            r"not implemented for '|dtype|[Cc]omplex|floating|[Ff]loat|[Bb]ool|[Ii]nteg|uint8|[Ll]ong|did not match|"
            r"Type promoting not|can't be cast to the desired|Unsupported input type|Scale must be|handle types|"
            r"only supported on",
            "integers, bools and mixed dtypes are promoted, as in other functions"),
        ("lax", "masked_select where",
            r"expected BoolTensor for mask|expected condition to be a boolean|only support(s)? boolean masks",
            "OneFlow takes integer masks, and its order of parameters"),
        ("lax", """
            adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
            adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d
            adaptive_max_pool3d_with_indices avg_pool1d avg_pool3d channel_shuffle local_response_norm lp_pool1d
            lp_pool3d max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
            max_pool3d_with_indices max_unpool1d max_unpool2d pdist
        """,
            r"Expected \d+ (to|or) \d+ dimensions|or \dD tensor|"
            r"or \dD \(batch|\(batch mode\) tensor|Expected \dD or|non-empty \dD|Input dimension should be at least|"
            r"Expected \dD or higher|expects input with > \d dims|should be a \dd or|only supports 2D tensors|"
            r"Dimension out of range.*pool",
            "any number of leading dimensions is taken"),
        ("lax", "binary_cross_entropy_with_logits logsumexp soft_margin_loss",
            r"output with shape|broadcast shape",
            "operands broadcast against each other"),
        ("lax", "",
            r"INTERNAL ASSERT|isIntegral\( false\)|MKL FFT error",
            "torch itself breaks: at a bool tensor for a number, or nothing"),
        ("lax", "",
            r"only one element tensors can be converted",
            "a list of tensors is stacked, as one of arrays"),
        ("lax", "",
            r"look up dimensions by name",
            "no dimension is none that older versions of torch look up: all of them"),
        ("lax", "eig solve",
            r"deprecated since version",
            "removed from torch; OneFlow has it"),
        ("lax", """
            adaptive_max_pool2d adaptive_max_pool3d avg_pool1d conv_transpose3d embedding lp_pool1d max_pool1d
            max_pool1d_with_indices
        """,
            r"should contain one int|must be an int|output_size.size\(\)",
            "one size, or a tensor of one number, is taken for a number, and for every dimension"),
        ("strict", "",
            r"must be [^;]*, not (Tensor|bool|list|tuple|str)|of a 0-d tensor|over a 0-d tensor|"
            r"a module of torch's calls it|Multiple dispatch failed|got tensor\(|einsum\(\) takes an equation",
            "a tensor or a bool isn't taken for an option of another type"),
        ("strict", "",
            r"out has shape|out must be",
            "torch resizes `out` with a warning"),
        ("strict", """
            hardtanh_ hinge_embedding_loss kaiser_window kl_div l1_loss log_softmax mse_loss multilabel_soft_margin_loss
            smooth_l1_loss soft_margin_loss softmax softmin cross_entropy svd lu lu_factor lu_factor_ex to
            triplet_margin_loss
        """,
            r"ignore_index is not supported|u and v are always|is not a valid value for reduction|"
            r"does not support negative values|is above max_val|(beta|margin) must be|is not a dtype|"
            r"no dtype is called|pivoting is always used",
            "torch doesn't check an option that it doesn't use"),
        ("strict", "adjoint cholesky diff",
            r"Dimension out of range|square matrices|at least 2 dimensions",
            "torch's deprecated forms take vectors and nothing"),
        ("strict", "batch_norm",
            r"expected running|takes x of two|a weight for each|should contain",
            "of an empty batch torch checks nothing"),
        ("strict", "binary_cross_entropy_with_logits margin_ranking_loss",
            r"must be the same as input|All input tensors should",
            "torch's C++ functions broadcast"),
        ("strict", "cumprod_ cumsum_",
            r"DtypeError",
            "a bool can't hold a sum"),
        ("strict", "broadcast_to expand repeat tile",
            r"negative dimension|is not allowed for a new",
            "nothing, less than once"),
        ("strict", "max_unpool1d max_unpool2d max_unpool3d",
            r"out of bounds for dimension \d+ with size 0",
            "indices into nothing"),
        ("strict", "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d",
            r"non-zero size for non-batch",
            "the average of nothing"),
        ("strict", "fused_moving_avg_obs_fake_quant",
            r"converted to Scalar|is invalid for input of size",
            "the first of several numbers"),
        ("strict", "fftn hfftn ifftn ihfftn irfftn rfftn",
            r"has no len",
            "a number for sizes"),
        ("strict", "hardsigmoid hardswish mish relu relu6 selu silu threshold",
            r"'inplace' must be bool, not",
            "any value for a bool"),
        ("strict", "normalize",
            r"'ord' must be float, not NoneType",
            "None for an order of 2"),
        ("strict", "median nanmedian",
            r"to have non-zero size",
            "of no integers torch gives some number"),
        ("strict", "fill_diagonal_",
            r"equal sizes, and no wrap",
            "a wrap that changes nothing"),
        ("strict", "histogram",
            r"missing required",
            "torch takes the bins from a range that is None"),
        ("strict", "broadcast_shapes cumulative_trapezoid trapezoid trapz",
            r"don't fit together",
            "None for a shape, coordinates without a dimension"),
        ("strict", "cross_entropy nll_loss where",
            r"would be ignored|condition to be a boolean",
            "the places of torch's size_average and of its mask"),
        ("strict", "add add_ sub sub_ subtract subtract_",
            r"got multiple values",
            "torch's deprecated order, with alpha before the other operand"),
        ("strict", """
            adaptive_avg_pool1d adaptive_avg_pool2d addcmul clamp clamp_ clip corrcoef embedding logcumsumexp logdet
            nanmedian pairwise_distance soft_margin_loss svd
        """,
            r"has no kernel for|not supported for complex|no counterpart|does not support complex",
            "Weft has no kernel for this dtype"),
        ("strict", "as_strided",
            r"x has gaps in memory",
            "a gradient goes to memory without gaps"),
        ("strict", "split",
            r"split_sizes=\[tensor",
            "sizes are integers; torch takes one that a tensor of fractions holds"),
        ("class", "",
            r"no dtype is called|Invalid number of data points|"
            r"IndexingError for ValueError: its arguments don't fit|FOR only one element tensors",
            "two arguments are wrong, and Weft names the other one; lists of tensors are stacked, if they fit"),
        ("class", """
            adaptive_avg_pool2d adaptive_avg_pool3d addbmm addbmm_ addmv addmv_ avg_pool2d baddbmm baddbmm_ batch_norm
            cross cross_entropy grid_sample group_norm index_reduce index_reduce_ lp_pool2d max_unpool1d max_unpool2d
            max_unpool3d multilabel_margin_loss mv put
        """,
            r": (ShapeError|OptionError|IndexingError) for (IndexError|ValueError)",
            "a tensor with too few dimensions is an IndexError in torch, a ShapeError here"),
        ("class", """
            adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool2d_with_indices
            adaptive_max_pool3d adaptive_max_pool3d_with_indices avg_pool2d huber_loss index_copy index_reduce
            local_response_norm log_softmax max_unpool2d multi_margin_loss rnn_tanh_cell softmax softmin
        """,
            r": (MissingKernelError|DtypeError) for (IndexError|ValueError)",
            "shape and dtype are wrong, and Weft names the dtype"),
        ("other", "type",
            r"'weft\.\w+' FOR 'torch",
            "a type has Weft's name"),
        ("other", "is_anomaly_check_nan_enabled is_anomaly_enabled",
            r"^flow.is_anomaly",
            "each has its own setting"),
        ("other", TYPED,
            r"Tensor\(",
            "torch's memory is uninitialized"),
        ("wide", f"""
            {TYPED} copy_ inner instance_norm is_conj is_inference is_neg is_nonzero resolve_conj resolve_neg to
            true_divide type_as
        """,
            r"argument 'input' \(position 1\) must be Tensor|must be Tensor, not (list|tuple|torch.dtype)|"
            r"data must be a sequence|must be torch\.device|unexpected keyword argument 'rounding_mode'",
            "functions that are constant don't check their argument; lists are taken for tensors; OneFlow's options"),
        ("memory", "adjoint conj",
            r"complex.*: new FOR a view$",
            "torch conjugates lazily"),
        ("memory", TYPED,
            r"FOR",
            "OneFlow's constructors share memory"),
        ("lax", """
            _fake_quantize_learnable_per_tensor_affine adaptive_avg_pool2d adaptive_avg_pool3d addcmul block_diag
            broadcast_shapes chain_matmul cond diff fake_quantize_per_channel_affine fake_quantize_per_tensor_affine
            gaussian_nll_loss histogram instance_norm isin kron linspace logspace mse_loss multilabel_margin_loss
            nanquantile norm normalize pairwise_distance quantile repeat_interleave resize stft take_along_dim vander
            vector_norm
        """,
            r"`zero_point`|`quant_m|view size is not compatible|expected 2 instead|Input shapes should|"
            r"0-dimensional start|N must be greater|requested resize|2 or fewer dimensions|cannot compute the|"
            r"must be non-empty|return_complex|invalid norm type|undefined Tensor|converted to Scalar|"
            r"without overflow|prepend or append|var is of incorrect size|at least one-dimensional|bins must be|"
            r"Boolean value of|output_size must be|repeat dims|only accept 1D vector|non-empty vector",
            "Weft computes for shapes and values that torch's checks refuse"),
        ("lax", """
            avg_pool2d cond cross_entropy nll_loss diff fake_quantize_per_tensor_affine index_fill lp_pool2d
            multilabel_soft_margin_loss select vander vector_norm
        """,
            r"singular|Dimension specified as|Dimension out of range|out of range|out of bounds",
            "numbers that torch would round, dimensions that it counts, the place of its size_average"),
        ("strict", "polygamma",
            r"must be tensor, not",
            "only some ops take a number for a tensor"),
        ("other", "cond solve_ex svd",
            r"(float|complex)\d+\[.*FOR \[?(float|complex)\d+\[",
            "eigenvectors of another sign or basis; one info per system"),
        ("other", """
            binary_cross_entropy_with_logits gaussian_nll_loss hinge_embedding_loss kl_div l1_loss margin_ranking_loss
            mse_loss multilabel_soft_margin_loss smooth_l1_loss soft_margin_loss triplet_margin_loss cross_entropy
            huber_loss poisson_nll_loss
        """,
            r"FOR (float|complex|int|uint)",
            "the target broadcasts; torch's C++ functions don't reduce, its others take size_average amid the options"),
        ("strict", "cross_entropy l1_loss mse_loss smooth_l1_loss",
            r"argument '(weight|reduction)' must be|with a bool tensor is not supported",
            "the place of torch's size_average or reduce"),
        ("other", "gradient",
            r"spacing=0",
            "a step of nothing"),
        ("other", "all any",
            r"\[\].*FOR (bool|uint8)",
            "an empty list of dimensions means all of them"),
        ("other", "addcmul cosine_similarity ldexp normalize trapezoid xlog1py",
            r"(complex64|float16|int|uint).* FOR (float|complex|int|uint)",
            "another precision after promotion; an integer tensor times a fraction is float"),
        ("other", "where",
            r"FOR (bool|float|complex|int|uint)",
            "OneFlow's order: the mask is first"),
        ("other", "unique_consecutive",
            r"FOR \[",
            "without a dimension the inverse has x's shape"),
    )
]  # fmt: skip
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


# ---- random calls -------------------------------------------------------------------------------------

DTYPES: Final = (torch.float32,) * 6 + (torch.float64, torch.int64, torch.int64, torch.bool, torch.int32, torch.float16,
                                        torch.complex64, torch.uint8)  # fmt: skip
SHAPES: Final = ((2, 3), (2, 3), (3,), (2, 3, 4), (3, 3), (1, 3), (), (0,), (2, 0), (4, 5), (1,), (2, 3, 4, 5))
ORDERS: Final = (torch.clone,) * 4 + (
    lambda t: t.transpose(0, -1) if t.ndim > 1 else t,
    lambda t: torch.stack([t, t], -1)[..., 0],
)
ODD: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1, 2, 5, -7, 2.5, -0.5, "x", "mean", (), (-1,), (0, 0), (2, 3), (1, 0), [1], (7, -7), [],
    flow.float64, flow.int64, {}, 1j, "sum", "none",
)  # fmt: skip
PLAIN: Final[dict[str, tuple[Any, ...]]] = {
    "int": (0, 1, 2, -1, 3, -3), "float": (0.5, 1.0, 2.0, 0.0, -1.0), "bool": (True, False),
    "Scalar": (1, 0.5, 2, True), "str": ("mean", "sum", "none", "x"), "DType": (flow.float32, flow.int64, flow.float64),
}  # fmt: skip
KEYWORDS: Final = ("dim", "keepdim", "dtype", "out", "axis", "other", "alpha", "end", "lambd", "value", "input",
                   "index")  # fmt: skip


class Maker:
    """Random calls, the same ones for the same seed."""

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
        data = data * 0.5 if dtype.is_floating_point and self.random.random() < 0.5 else data
        return of_torch(self.random.choice(ORDERS)(data))

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


# ---- both results ----------------------------------------------------------------------------------------


def twin(value: Any) -> Any:
    """The same value as torch's."""
    if isinstance(value, flow.Tensor):
        return lying_alike(value.to_torch())
    if isinstance(value, dtypes.DType):
        return value.torch
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(twin, value))
    return value


def lying_alike(data: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides."""
    made = torch.empty_strided(data.shape, data.stride(), dtype=data.dtype)
    once = tuple(slice(None) if step else slice(1) for step in data.stride())  # of what is expanded
    made[once].copy_(data[once])
    return made


def shown(value: Any) -> str:
    if isinstance(value, flow.Tensor):  # some kernels return dtypes that Weft lacks
        value = value.to_torch()
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value)


def alike(ours: Any, theirs: Any) -> bool:
    """Whether two results are equal; of unknown types they count as equal."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, flow.Tensor):
            return False
        data = ours.detach().to_torch()
        if data.shape != theirs.shape or data.dtype != theirs.dtype:
            return False
        if theirs.is_floating_point() or theirs.is_complex():
            ulps = 2 * torch.finfo(theirs.dtype).eps  # of 16 bits: compositions round more often than kernels
            return torch.allclose(data, theirs.detach(), max(1e-3, ulps), max(1e-4, ulps), equal_nan=True)
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


def outcome(pair: tuple[Function, Function], call: Call) -> tuple[str, str]:
    """A call's outcome, and its description."""
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
            # other builtin errors of torch's come from its parser, or are slips of its Python
            if isinstance(error, (builtin, ArgumentError)) or builtin not in CAUGHT:
                return "refused", str(error)
            return "class", f"{type(error).__name__} for {builtin.__name__}: {error} FOR {refusal}"
        except Exception as error:
            if isinstance(error, TypeError) and "got multiple values" in str(error):  # raised by Python's call itself
                return "refused" if refusal is not None else "strict", str(error)
            return "raw", f"{type(error).__name__}: {error}"
    if isinstance(refusal, TypeError):
        return "wide", f"{shown(ours)} FOR {refusal}"
    if refusal is not None:
        return "lax", f"{shown(ours)} FOR {type(refusal).__name__}: {refusal}"
    if not alike(ours, theirs):
        return "other", f"{shown(ours)} FOR {shown(theirs)}"
    expected = kinships([*other.args, *other.kwargs.values()], theirs)
    found = kinships([*call.args, *call.kwargs.values()], ours)
    if found != expected:
        return "memory", f"{', '.join(found)} FOR {', '.join(expected)}"
    return "same", ""


def kinships(given: Any, result: Any) -> list[str]:
    """Whether each tensor of a result is an operand itself, a view of one, or new."""
    operands = list(inside(given))
    memories = {memory(x) for x in operands} - {0}
    return [
        "itself" if any(y is x for x in operands) else "a view" if memory(y) in memories else "new"
        for y in inside(result)
    ]


def inside(value: Any) -> Iterator[Any]:
    """The tensors in a value."""
    if isinstance(value, (torch.Tensor, flow.Tensor)):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from inside(v)


def memory(x: Any) -> int:
    """Where the memory of a tensor begins; 0 if it has none."""
    return (x.detach().to_torch() if isinstance(x, flow.Tensor) else x).untyped_storage().data_ptr()


def outcomes(n: int, seed: int = 0) -> Iterator[tuple[str, Call, str]]:
    """The outcome of each of n calls."""
    maker = Maker(seed)
    for _ in range(n):
        call = maker.call()
        said = str(call)  # before it is overwritten
        kind, why = outcome(maker.pairs[call.name], call)
        yield kind, call, f"{said}: {why}"


def unexplained(kind: str, call: Call, said: str, reasons: Sequence[Reason] = REASONS) -> bool:
    """Whether an outcome needs a reason and has none."""
    name = call.name.partition(".")[2]
    return kind not in ("same", "refused") and not any(
        r.kind == kind and (r.names is None or name in r.names) and r.form.search(said) for r in reasons
    )


def fuzz(n: int = 1000, seed: int = 0) -> Counter[str]:
    """How many of n calls had each outcome; `unexplained` counts those that need a reason and have none, and prints
    them."""
    counted: Counter[str] = Counter()
    for kind, call, said in outcomes(n, seed):
        counted[kind] += 1
        if unexplained(kind, call, said):
            counted["unexplained"] += 1
            print(kind, said.replace("\n", " ")[:300])
    return counted


if __name__ == "__main__":
    print(json.dumps(fuzz(*map(int, sys.argv[1:]))))
