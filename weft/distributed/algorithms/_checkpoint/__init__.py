"""`checkpoint_wrapper` and `apply_activation_checkpointing`."""
