"""`torch.distributed.algorithms`: `Join`, and torch's wrapper that recomputes a module's activations."""

from weft.core.derived import Derived

Derived(f"{__name__}._checkpoint.checkpoint_wrapper", "torch.distributed.algorithms._checkpoint.checkpoint_wrapper")
