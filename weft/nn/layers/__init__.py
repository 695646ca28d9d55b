"""Layers, in files with PyTorch's names. Those that torch composes in Python are derived: these are the tables."""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import Any, Final, get_overloads

from torch.nn.modules import loss

from weft.autograd.plain import ours
from weft.core.derived import GIVEN, Change, Derived
from weft.core.errors import ArgumentError, AssertedError, IndexingError, OptionError, ShapeError
from weft.core.stored import stored
from weft.functional.neural import embeddings
from weft.functional.neural.fractional_pooling import check_sizes
from weft.functional.neural.sizes import several
from weft.nn import attention
from weft.nn import functional as F
from weft.nn.layers import batch_statistics, clusters, recurrence
from weft.nn.layers.lazy import lazy
from weft.nn.module.refusals import constructing
from weft.ops import ops
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

Function = Callable[..., Any]
Arguments = dict[str, Any]

FILES: Final = ("module",)  # of flow.nn's names
ERRORS: Final = {
    "AssertionError": AssertedError, "IndexError": IndexingError,
    "RuntimeError": OptionError, "TypeError": ArgumentError,
}  # fmt: skip


def _always(f: Any) -> Change:
    return lambda theirs: f


def _init(change: Change) -> Change:
    """Replace an `__init__`; wrong arguments are explained, as for Weft's layers."""
    return lambda theirs: constructing(change(theirs.__wrapped__))


def _adapting(adapt: Callable[..., None], *options: Any) -> Change:
    """An `__init__` whose arguments, by name, are checked or changed first."""

    def change(theirs: Function) -> Function:
        takes = inspect.signature(theirs)

        @functools.wraps(theirs)
        def init(*args: Any, **kwargs: Any) -> None:
            given = takes.bind(*args, **kwargs).arguments
            adapt(given, *options)
            theirs(**given)

        return init

    return _init(change)


def _without(*dropped: str) -> Change:
    """A class whose constructor lacks deprecated arguments."""

    def change(theirs: Any) -> Any:
        made = theirs.__init__
        old = inspect.signature(made)
        takes = old.replace(parameters=[p for n, p in old.parameters.items() if n not in dropped])

        def init(*args: Any, **kwargs: Any) -> None:
            given = takes.bind(*args, **kwargs).arguments
            if isinstance(given.get("ignore_index"), bool):
                raise OptionError(
                    f"{theirs.__name__}: ignore_index is a class's number; got {given['ignore_index']}. The deprecated "
                    'argument there, size_average, is now reduction="mean" or "sum"'
                )
            made(**given)

        init.__signature__ = takes
        theirs.__init__ = constructing(init)
        return theirs

    return change


# ---- containers --------------------------------------------------------------------------------------


def _position(self: Any, idx: Any) -> str:
    at, n = operator.index(idx), len(self)
    if not -n <= at < n:
        raise IndexingError(f"index {at} is out of range: this {self._get_name()} has {n} members")
    return str(at % n)


def _member(theirs: Function) -> Function:
    """A member by name; torch's code makes a view of all members on each access."""

    def get(self: Any, idx: Any) -> Any:
        name = str(idx)
        return stored(self)[name] if self._roles.get(name) == "module" else theirs(self, idx)

    return get


def _chain(theirs: Function) -> Function:
    """`Sequential(*modules)`, or of one list or dict of modules."""

    @functools.wraps(theirs)
    def init(self: Any, *args: Any) -> None:
        if len(args) == 1 and isinstance(args[0], Mapping):
            args = (OrderedDict(args[0]),)
        elif len(args) == 1 and isinstance(args[0], (list, tuple, types.GeneratorType)):
            args = tuple(args[0])
        theirs(self, *args)

    return init


def _called(self: Any, input: Any) -> Any:
    members = stored(self)
    for name in [name for name, role in self._roles.items() if role == "module"]:
        input = members[name](input)
    return input


def _described(members: Callable[[Any], Iterable[tuple[Any, Any]]]) -> Function:
    """A line for each member. Torch's code asks for a device, which global tensors lack."""

    def line(name: Any, p: Any) -> str:
        if not isinstance(p, Tensor):
            return f"  ({name}): Object of type: {type(p).__name__}"
        kind = "Parameter" if isinstance(p, Parameter) else "Tensor"
        where = f" on {p.placement}" if p.is_global else f" ({p.device})" if p.device.type == "cuda" else ""
        return f"  ({name}): {kind} containing: [{p.dtype} of size {'x'.join(map(str, p.shape))}{where}]"

    return lambda self: "\n".join(line(*member) for member in members(self))


def _not_called(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise OptionError(f"{self._get_name()} should not be called.")


CONTAINER: Final = {
    "ParameterDict.__call__": _always(_not_called),
    "ModuleDict.__getitem__": _member,
    "ModuleList._get_abs_string_index": _always(_position),
    "ModuleList.__getitem__": _member,
    "ParameterDict.extra_repr": _always(_described(lambda held: held.items())),
    "ParameterList.extra_repr": _always(_described(enumerate)),
    "ParameterList._get_abs_string_index": _always(_position),
    "Sequential.__init__": _init(_chain),
    "Sequential.forward": _always(_called),
    "Sequential._get_item_by_idx": _always(lambda self, every, idx: [*every][int(_position(self, idx))]),
}

# ---- pooling -----------------------------------------------------------------------------------------


def _sized(given: Arguments, dims: int) -> None:
    ratios = check_sizes(dims, given.get("output_size"), given.get("output_ratio"))[1]
    given["output_ratio"] = ratios or None


POOLING: Final = {f"FractionalMaxPool{n}d.__init__": _adapting(_sized, n) for n in (2, 3)}

# ---- upsampling --------------------------------------------------------------------------------------


def _by_any_list(given: Arguments) -> None:
    if isinstance(given.get("scale_factor"), list):
        given["scale_factor"] = tuple(given["scale_factor"])


UPSAMPLING: Final = {"Upsample.__init__": _adapting(_by_any_list)}

# ---- activations -------------------------------------------------------------------------------------


def _forward(function: str, *options: str) -> Change:
    """The function of a module's options by position, and `inplace` only where it is asked for: torch's code gives it
    always, for which arguments are adapted at every call."""

    def forward(self: Any, input: Tensor) -> Tensor:
        values = [getattr(self, name) for name in options]
        if stored(self).get("inplace"):
            return getattr(F, function)(input, *values, inplace=True)
        return getattr(F, function)(input, *values)

    return _always(forward)


def _shrinking(theirs: Any) -> Any:
    """With OneFlow's `inplace`."""

    def init(self: Any, lambd: float = 0.5, inplace: bool = False) -> None:
        super(theirs, self).__init__()
        self.lambd, self.inplace = lambd, inplace

    theirs.__init__ = constructing(init)
    return theirs


def _taking_inplace(theirs: Any) -> Any:
    """With OneFlow's `inplace`, which has no effect there either."""
    theirs.__init__ = constructing(lambda self, inplace=False: super(theirs, self).__init__())
    return theirs


def _at_zero(theirs: Function) -> Function:
    def init(self: Any, threshold: float = 0.0, value: float = 0.0, inplace: bool = False) -> None:
        theirs(self, threshold, value, inplace)

    return init


FORWARD: Final = """
    CELU=celu,alpha ELU=elu,alpha GELU=gelu,approximate Hardshrink=hardshrink,lambd Hardsigmoid=hardsigmoid
    Hardswish=hardswish Hardtanh=hardtanh,min_val,max_val LeakyReLU=leaky_relu,negative_slope Mish=mish SELU=selu
    SiLU=silu Softmin=softmin,dim Softshrink=softshrink,lambd Threshold=threshold,threshold,value
"""
ACTIVATION: Final = {
    **{f"{k}.forward": _forward(*said.split(",")) for k, said in (row.split("=") for row in FORWARD.split())},
    "Hardshrink": _shrinking,
    "LogSoftmax.forward": _always(lambda self, input: F.log_softmax(input, self.dim)),
    "MultiheadAttention.forward": _always(attention.attend),
    "ReLU.forward": _always(lambda self, input: F.relu_(input) if self.inplace else F.relu(input)),
    "Softmax.forward": _always(lambda self, input: F.softmax(input, self.dim)),
    "Softmax2d.forward": _always(lambda self, input: F.softmax(input, -3)),
    "Softshrink": _shrinking,
    "Softsign": _taking_inplace,
    "Threshold.__init__": _init(_at_zero),
}

# ---- shuffled pixels ---------------------------------------------------------------------------------


def _by_two(theirs: Function) -> Function:
    """OneFlow's form takes separate factors for height and width."""

    def init(
        self: Any, upscale_factor: int | None = None, h_upscale_factor: int | None = None,
        w_upscale_factor: int | None = None,
    ) -> None:  # fmt: skip
        each = h_upscale_factor, w_upscale_factor
        if (None in each) if upscale_factor is None else each != (None, None):
            raise OptionError("PixelShuffle takes an upscale_factor, or one for the height and one for the width")
        theirs(self, each if upscale_factor is None else upscale_factor)

    return init


PIXELSHUFFLE: Final = {"PixelShuffle.__init__": _init(_by_two)}

# ---- softmax in clusters -----------------------------------------------------------------------------

ADAPTIVE: Final = {
    "AdaptiveLogSoftmaxWithLoss._get_full_log_prob": _always(clusters.of_all),
    "AdaptiveLogSoftmaxWithLoss.forward": _always(clusters.forward),
    "AdaptiveLogSoftmaxWithLoss.predict": _always(lambda self, input: ops.argmax(self.log_prob(input), 1)),
}

# ---- layers whose size is that of their first input ----------------------------------------------------


def _lazily(dim: int, **usual: Any) -> Change:
    return lambda theirs: lazy(theirs.cls_to_become, dim, **usual)


class _Mixin:
    """What torch's lazy layers inherit from, before Weft's take their place."""


GIVEN["torch.nn.modules.lazy.LazyModuleMixin"] = _Mixin


def _whole(given: Arguments) -> None:
    sizes = given["in_features"], given["out_features"]
    if any(not isinstance(n, Integral) or isinstance(n, bool) or n < 0 for n in sizes):
        raise OptionError(f"a layer's sizes must be nonnegative integers; got {sizes[0]} and {sizes[1]}")


def _on_own(forward: Function) -> Function:
    return functools.wraps(forward)(lambda self, input: forward(self, ours(input)))


def _same(self: Any, input: Tensor) -> Tensor:
    return input if type(input) is Tensor else ours(input)


FLATTEN: Final = {"Flatten.forward": _on_own, "Unflatten.forward": _on_own}
LINEAR: Final = {"Linear.__init__": _adapting(_whole), "LazyLinear": _lazily(-1), "Identity.forward": _always(_same)}

# ---- convolutions ------------------------------------------------------------------------------------


SIZES: Final = ("kernel_size", "stride", "padding", "dilation", "output_padding")


def _in_dims(given: Arguments, count: int) -> None:
    """Sizes are one number, or one for each dimension."""
    for name, value in given.items():
        if name in SIZES and not (name == "padding" and isinstance(value, str)):
            several(value, count, name)


KINDS: Final = [(f"{kind}{n}d", n) for kind in ("Conv", "ConvTranspose") for n in (1, 2, 3)]
CONV: Final = {
    **{f"{name}.__init__": _adapting(_in_dims, n) for name, n in KINDS},
    **{f"Lazy{name}": _lazily(-1 - n) for name, n in KINDS},
}

# ---- dropout -----------------------------------------------------------------------------------------


def _drawing(theirs: Any) -> Any:
    """OneFlow's extra arguments: a generator, and in a call a tensor to add to the result."""

    def init(self: Any, p: float = 0.5, inplace: bool = False, generator: Any = None) -> None:
        super(theirs, self).__init__(p, inplace)
        self.generator = generator

    def forward(self: Any, input: Tensor, addend: Tensor | None = None) -> Tensor:
        if addend is None and self.generator is None and isinstance(input, Tensor):
            return F.dropout(input, self.p, True, self.inplace) if self.training and self.p else input
        return F.dropout(input, self.p, self.training, self.inplace, generator=self.generator, addend=addend)

    theirs.__init__, theirs.forward = constructing(init), forward
    theirs.generator = None  # of one that torch wrote to a file
    return theirs


DROPOUT: Final = {"Dropout": _drawing}

# ---- padding -----------------------------------------------------------------------------------------


def _by_zeros(theirs: Function) -> Function:
    """With OneFlow's default."""

    def init(self: Any, padding: Any, value: float = 0.0) -> None:
        theirs(self, padding, value)

    return init


PADDING: Final = {f"ConstantPad{n}d.__init__": _init(_by_zeros) for n in (1, 2, 3)}

# ---- embeddings --------------------------------------------------------------------------------------


def _looked_up(self: Any, input: Tensor) -> Tensor:
    """The op itself: `F.embedding` costs a call more."""
    if self.max_norm is not None:
        embeddings.embedding_renorm_(self.weight, input, self.max_norm, self.norm_type)
    return ops.embedding(self.weight, input, self.padding_idx, self.scale_grad_by_freq, self.sparse)


SPARSE: Final = {"Embedding.forward": _always(_looked_up)}

# ---- normalization -----------------------------------------------------------------------------------


def _since_version_two(theirs: Any) -> Any:
    """Older states lack the count of batches."""
    del theirs._load_from_state_dict  # torch's asks for a device, which global tensors lack
    theirs._since = {"num_batches_tracked": 2}
    return theirs


def _converted(theirs: Any) -> Any:
    def convert(cls: Any, module: Any, process_group: Any = None) -> Any:
        """Replace every BatchNorm in a module by a SyncBatchNorm with the same values."""
        other = isinstance(module, cls.__base__) and not type(module).__name__.startswith("BatchNorm")
        return module if other else theirs.__func__(cls, module, process_group)

    return classmethod(convert)


BATCHNORM: Final = {
    "_NormBase": _since_version_two,
    "_BatchNorm.forward": _always(batch_statistics.forward),
    "SyncBatchNorm.forward": _always(batch_statistics.over_ranks),
    "SyncBatchNorm.convert_sync_batchnorm": _converted,
    **{f"LazyBatchNorm{n}d": _lazily(1) for n in (1, 2, 3)},
}
INSTANCENORM: Final = {
    f"LazyInstanceNorm{n}d": _lazily(-1 - n, affine=True, track_running_stats=True) for n in (1, 2, 3)
}

# ---- losses ------------------------------------------------------------------------------------------

# deprecated arguments amid those that OneFlow has, which has them in one loss alone
LOSS: Final = dict.fromkeys({*loss.__all__} - {"TripletMarginLoss"}, _without("size_average", "reduce"))

# ---- recurrent layers --------------------------------------------------------------------------------

FLAT: Final = ("__getstate__", "__setattr__", "__setstate__", "_apply", "_replicate_for_data_parallel")


def _not_flattened(theirs: Any) -> Any:
    """Torch's class keeps a second list of weights, for cuDNN."""
    for name in FLAT:
        delattr(theirs, name)
    theirs._init_flat_weights = theirs.flatten_parameters = lambda self: None
    theirs.forward = recurrence.forward
    return theirs


def _recurrent(theirs: Any) -> Any:
    """With the arguments that torch's class tells type checkers."""
    made = theirs.__init__.__wrapped__
    takes = inspect.signature(get_overloads(made)[0])

    def init(*args: Any, **kwargs: Any) -> None:
        given = takes.bind(*args, **kwargs).arguments
        made(given.pop("self"), **given)

    init.__signature__ = takes
    theirs.__init__ = constructing(init)
    del theirs.forward
    return theirs


def _cell(mode: str) -> Change:
    def change(theirs: Any) -> Any:
        theirs.forward = recurrence.next_state
        theirs.mode = mode if mode != "RNN" else property(lambda self: f"RNN_{self.nonlinearity.upper()}")
        return theirs

    return change


RNN: Final = {
    "RNNBase": _not_flattened,
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **{f"{mode}Cell": _cell(mode) for mode in ("GRU", "LSTM", "RNN")},
}

# ---- transformers ------------------------------------------------------------------------------------


def _dropped(dropout: Any, y: Any, attention: Any) -> Any:
    """Dropout of attention's output, drawn in the memory order of a local one, whose batch is second."""
    if y.is_local or not attention.batch_first or y.ndim != 3:
        return dropout(y)
    return ops.transpose(dropout(ops.transpose(y, 0, 1)), 0, 1)


def _self_attention(self: Any, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
    found = self.self_attn(x, x, x, key_padding_mask, False, attn_mask, is_causal=is_causal)[0]
    return _dropped(self.dropout1, found, self.self_attn)


def _cross_attention(
    self: Any, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False
) -> Any:
    found = self.multihead_attn(x, mem, mem, key_padding_mask, False, attn_mask, is_causal=is_causal)[0]
    return _dropped(self.dropout2, found, self.multihead_attn)


def _known(theirs: Function) -> Function:
    def find(activation: str) -> Any:
        if activation not in ("relu", "gelu"):
            raise OptionError(f"activation should be 'relu', 'gelu' or a function; got {activation!r}")
        return theirs(activation)

    return find


TRANSFORMER: Final = {
    "TransformerEncoderLayer._sa_block": _always(_self_attention),
    "TransformerDecoderLayer._sa_block": _always(_self_attention),
    "TransformerDecoderLayer._mha_block": _always(_cross_attention),
    "_get_activation_fn": _known,
    # only `is_causal` says that a mask is causal: torch reads the values of a mask, which a graph doesn't have
    "_detect_is_causal_mask": _always(lambda mask, is_causal=None, size=None: bool(is_causal)),
    "warnings": _always(types.SimpleNamespace(warn=lambda *args, **kwargs: None)),  # that nested tensors are missing
}
GIVEN["torch.backends.mha.get_fastpath_enabled"] = lambda: False  # a C++ kernel, without gradients and layouts
GIVEN["torch.nn.functional._canonical_mask"] = lambda mask, *args, **kwargs: mask  # attention adds masks itself
GIVEN["torch.nn.functional._none_or_dtype"] = lambda mask: None

CHANGES: Final = {
    "activation": ACTIVATION, "adaptive": ADAPTIVE, "batchnorm": BATCHNORM, "container": CONTAINER, "conv": CONV,
    "dropout": DROPOUT, "flatten": FLATTEN, "instancenorm": INSTANCENORM, "linear": LINEAR, "loss": LOSS,
    "padding": PADDING, "pixelshuffle": PIXELSHUFFLE, "pooling": POOLING, "rnn": RNN, "sparse": SPARSE,
    "transformer": TRANSFORMER, "upsampling": UPSAMPLING,
}  # fmt: skip
for _file in (*CHANGES, "channelshuffle", "distance", "fold", "normalization"):
    _errors = {**ERRORS, "ValueError": ShapeError if _file in ("batchnorm", "instancenorm") else OptionError}
    Derived(f"{__name__}.{_file}", f"torch.nn.modules.{_file}", {"": CHANGES.get(_file, {})}, errors=_errors)
