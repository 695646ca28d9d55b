"""Losses as modules. A row of the table is a class."""

from __future__ import annotations

import inspect
from typing import Any

from weft.core.errors import OptionError
from weft.functional.neural.margin_losses import combined_margin_loss
from weft.nn import functional as F
from weft.nn.layers.distance import PairwiseDistance
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor


class _Loss(Module):
    """A loss; its options are attributes, named like the function's arguments."""

    function: str
    options: tuple[str, ...] = ()

    def __init__(self, reduction: str = "mean", **options: Any) -> None:
        super().__init__()
        if isinstance(options.get("ignore_index"), bool):
            raise OptionError(
                f"{self._get_name()}: ignore_index is a class's number; got {options['ignore_index']}. The "
                'deprecated argument there, size_average, is now reduction="mean" or "sum"'
            )
        self.reduction = reduction
        for name, value in options.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)
        self.options = tuple(options)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        values = {name: self.__dict__[name] for name in self.options}
        return getattr(F, self.function)(*inputs, **named, **values, reduction=self.reduction)


_WeightedLoss = _Loss  # torch's name for the losses that take weights


def loss_of(name: str, function: str, options: str, doc: str) -> type[_Loss]:
    """The module class of a loss of nn.functional. It takes these of the function's options, with their defaults;
    those after * by keyword only."""
    known, kinds = inspect.signature(getattr(F, function)).parameters, inspect.Parameter
    before, _, after = options.partition("*")
    every = [kinds("self", kinds.POSITIONAL_ONLY)]
    for kind, names in ((kinds.POSITIONAL_OR_KEYWORD, before), (kinds.KEYWORD_ONLY, after)):
        every += [known[n].replace(kind=kind) for n in names.split()]
    takes = inspect.Signature(every, return_annotation="None")

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = takes.bind(self, *args, **kwargs)
        given.apply_defaults()
        _Loss.__init__(**given.arguments)

    __init__.__signature__ = takes  # type: ignore[attr-defined]
    members = {"function": function, "__doc__": doc, "__module__": __name__, "__init__": __init__}
    return type(name, (_Loss,), members)


MSELoss = loss_of("MSELoss", "mse_loss", "reduction", "The mean squared difference.")
L1Loss = loss_of("L1Loss", "l1_loss", "reduction", "The mean absolute difference.")
SmoothL1Loss = loss_of("SmoothL1Loss", "smooth_l1_loss", "reduction beta", "Quadratic below `beta`, linear above it.")
HuberLoss = loss_of("HuberLoss", "huber_loss", "reduction delta", "Quadratic below `delta`, linear above it.")
CrossEntropyLoss = loss_of(
    "CrossEntropyLoss", "cross_entropy", "weight ignore_index reduction label_smoothing",
    "The negative log probability of each target class, with probabilities by softmax of scores.",
)  # fmt: skip
NLLLoss = loss_of(
    "NLLLoss", "nll_loss", "weight ignore_index reduction",
    "The negative log probability of each target class, from log probabilities.",
)  # fmt: skip
BCELoss = loss_of(
    "BCELoss", "binary_cross_entropy", "weight reduction",
    "Binary cross entropy: the negative log probability of each target, 0 or 1.",
)  # fmt: skip
BCEWithLogitsLoss = loss_of(
    "BCEWithLogitsLoss", "binary_cross_entropy_with_logits", "weight reduction pos_weight",
    "BCELoss of the sigmoid, numerically stable.",
)  # fmt: skip
KLDivLoss = loss_of(
    "KLDivLoss", "kl_div", "reduction log_target", "The Kullback-Leibler divergence of two distributions."
)
MarginRankingLoss = loss_of(
    "MarginRankingLoss", "margin_ranking_loss", "margin reduction",
    "How far pairs are from being ranked with the margin.",
)  # fmt: skip
TripletMarginLoss = loss_of(
    "TripletMarginLoss", "triplet_margin_loss", "margin p eps swap reduction",
    "How much the distance to the positive, plus the margin, exceeds that to the negative.",
)  # fmt: skip
CTCLoss = loss_of(
    "CTCLoss", "ctc_loss", "blank reduction zero_infinity",
    "The CTC loss: the negative log probability of a sequence of labels over all alignments.",
)  # fmt: skip
CosineEmbeddingLoss = loss_of(
    "CosineEmbeddingLoss", "cosine_embedding_loss", "margin reduction",
    "1 - cosine for pairs with target 1, the cosine above the margin for target -1.",
)  # fmt: skip
HingeEmbeddingLoss = loss_of(
    "HingeEmbeddingLoss", "hinge_embedding_loss", "margin reduction",
    "The input, a distance, for target 1; how far it is below the margin for target -1.",
)  # fmt: skip
GaussianNLLLoss = loss_of(
    "GaussianNLLLoss", "gaussian_nll_loss", "* full eps reduction",
    "The negative log likelihood of targets under normal distributions with predicted means and variances.",
)  # fmt: skip
SoftMarginLoss = loss_of("SoftMarginLoss", "soft_margin_loss", "reduction", "log(1 + exp(-target * input)).")
MultiMarginLoss = loss_of(
    "MultiMarginLoss", "multi_margin_loss", "p margin weight reduction",
    "How much other classes' scores exceed the target's minus the margin.",
)  # fmt: skip
MultiLabelMarginLoss = loss_of(
    "MultiLabelMarginLoss", "multilabel_margin_loss", "reduction",
    "How much other classes' scores exceed each target's minus 1.",
)  # fmt: skip
MultiLabelSoftMarginLoss = loss_of(
    "MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", "weight reduction",
    "Binary cross entropy of each class, averaged over classes.",
)  # fmt: skip


class PoissonNLLLoss(_Loss):
    """The negative log likelihood of counts under the Poisson distribution."""

    function = "poisson_nll_loss"

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction, log_input=log_input, full=full, eps=eps)

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(log_input, target)


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with a custom distance."""

    function = "triplet_margin_with_distance_loss"

    def __init__(
        self, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"
    ) -> None:
        distance = PairwiseDistance() if distance_function is None else distance_function
        super().__init__(reduction, distance_function=distance, margin=margin, swap=swap)


class CombinedMarginLoss(Module):
    """Cosines with an angular margin for the target class, as in face recognition."""

    def __init__(self, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0) -> None:
        super().__init__()
        self.m1, self.m2, self.m3 = m1, m2, m3

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        return combined_margin_loss(x, label, self.m1, self.m2, self.m3)
