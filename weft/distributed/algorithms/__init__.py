"""`torch.distributed.algorithms`: `Join`, torch's communication hooks, and its wrapper that recomputes activations."""

from weft.core.derived import Derived
from weft.distributed.algorithms import join  # what is derived finds it where it is loaded

Derived(f"{__name__}._checkpoint.checkpoint_wrapper", "torch.distributed.algorithms._checkpoint.checkpoint_wrapper")
Derived(f"{__name__}.ddp_comm_hooks", "torch.distributed.algorithms.ddp_comm_hooks")
Derived(f"{__name__}.model_averaging", "torch.distributed.algorithms.model_averaging")

__all__ = ["join"]
