"""`checkpoint_wrapper` and `apply_activation_checkpointing`, in torch's own Python."""

from weft.core.derived import Derived

Derived(f"{__name__}.checkpoint_wrapper", "torch.distributed.algorithms._checkpoint.checkpoint_wrapper")
