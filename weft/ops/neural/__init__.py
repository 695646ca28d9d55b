"""What layers compute in one kernel."""
