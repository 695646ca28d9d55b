"""Chains on CUDA devices: streams and events between tasks, and chains captured as CUDA graphs."""
