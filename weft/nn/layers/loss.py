"""Losses as modules."""

from __future__ import annotations

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
                f"{self._get_name()}: ignore_index is a class's number; got {options['ignore_index']}. What "
                'stood there in older programs, size_average, is said by reduction="mean" or "sum"'
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


class MSELoss(_Loss):
    """The mean squared difference."""

    function = "mse_loss"

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)


class L1Loss(_Loss):
    """The mean absolute difference."""

    function = "l1_loss"

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)


class SmoothL1Loss(_Loss):
    """Quadratic below `beta`, linear above it."""

    function = "smooth_l1_loss"

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction, beta=beta)


class HuberLoss(_Loss):
    """Quadratic below `delta`, linear above it."""

    function = "huber_loss"

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction, delta=delta)


class CrossEntropyLoss(_Loss):
    """The negative log probability of each target class, with probabilities by softmax of scores."""

    function = "cross_entropy"

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(reduction, weight=weight, ignore_index=ignore_index, label_smoothing=label_smoothing)


class NLLLoss(_Loss):
    """The negative log probability of each target class, from log probabilities."""

    function = "nll_loss"

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction, weight=weight, ignore_index=ignore_index)


class BCELoss(_Loss):
    """Binary cross entropy: the negative log probability of each target, 0 or 1."""

    function = "binary_cross_entropy"

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction, weight=weight)


class BCEWithLogitsLoss(_Loss):
    """BCELoss of the sigmoid, numerically stable."""

    function = "binary_cross_entropy_with_logits"

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(reduction, weight=weight, pos_weight=pos_weight)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of two distributions."""

    function = "kl_div"

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction, log_target=log_target)


class MarginRankingLoss(_Loss):
    """How far pairs are from being ranked with the margin."""

    function = "margin_ranking_loss"

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction, margin=margin)


class TripletMarginLoss(_Loss):
    """How much the distance to the positive, plus the margin, exceeds that to the negative."""

    function = "triplet_margin_loss"

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction, margin=margin, p=p, eps=eps, swap=swap)


class CTCLoss(_Loss):
    """The CTC loss: the negative log probability of a sequence of labels over all alignments."""

    function = "ctc_loss"

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction, blank=blank, zero_infinity=zero_infinity)


class CosineEmbeddingLoss(_Loss):
    """1 - cosine for pairs with target 1, the cosine above the margin for target -1."""

    function = "cosine_embedding_loss"

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction, margin=margin)


class HingeEmbeddingLoss(_Loss):
    """The input, a distance, for target 1; how far it is below the margin for target -1."""

    function = "hinge_embedding_loss"

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction, margin=margin)


class PoissonNLLLoss(_Loss):
    """The negative log likelihood of counts under the Poisson distribution."""

    function = "poisson_nll_loss"

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction, log_input=log_input, full=full, eps=eps)

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(log_input, target)


class GaussianNLLLoss(_Loss):
    """The negative log likelihood of targets under normal distributions with predicted means and variances."""

    function = "gaussian_nll_loss"

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction, full=full, eps=eps)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input))."""

    function = "soft_margin_loss"

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)


class MultiMarginLoss(_Loss):
    """How much other classes' scores exceed the target's minus the margin."""

    function = "multi_margin_loss"

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction, p=p, margin=margin, weight=weight)


class MultiLabelMarginLoss(_Loss):
    """How much other classes' scores exceed each target's minus 1."""

    function = "multilabel_margin_loss"

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """Binary cross entropy of each class, averaged over classes."""

    function = "multilabel_soft_margin_loss"

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction, weight=weight)


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
