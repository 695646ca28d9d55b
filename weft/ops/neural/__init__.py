"""Neural network ops: one kernel each."""
