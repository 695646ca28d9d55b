"""`flow.distributed.optim`: `ZeroRedundancyOptimizer` and `PostLocalSGDOptimizer`, which are torch's own code."""

from typing import TYPE_CHECKING

from weft.core.derived import Derived, lazily

if TYPE_CHECKING:
    from weft.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
    from weft.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

FILES = {
    "zero_redundancy_optimizer": ("ZeroRedundancyOptimizer",), "post_localSGD_optimizer": ("PostLocalSGDOptimizer",),
    "utils": (),
}  # fmt: skip
for _file in FILES:
    Derived(f"{__name__}.{_file}", f"torch.distributed.optim.{_file}")
__getattr__ = lazily(__name__, FILES)

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
