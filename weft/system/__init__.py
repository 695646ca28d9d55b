"""The machine as a program sees it: devices, ranks, threads, and collectives on local tensors."""

from weft.system import flow_c_collectives, kernel_settings  # they bind names in the table

__all__ = ["flow_c_collectives", "kernel_settings"]
