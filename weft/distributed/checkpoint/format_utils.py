"""A checkpoint's folder and a file of `torch.save`, one from the other."""

from __future__ import annotations

import os
from typing import Any

import torch

from weft.autograd.trees import mapped
from weft.checkpoint import checkpoint
from weft.tensor.tensor import Tensor


def dcp_to_torch_save(dcp_checkpoint_dir: Any, torch_save_path: Any) -> None:
    state = checkpoint.load(dcp_checkpoint_dir)
    torch.save(mapped(state, lambda v: v.to_torch() if isinstance(v, Tensor) else v), torch_save_path)


def torch_save_to_dcp(torch_save_path: Any, dcp_checkpoint_dir: Any) -> None:
    os.makedirs(dcp_checkpoint_dir, exist_ok=True)
    checkpoint.save(checkpoint.load(torch_save_path), dcp_checkpoint_dir)
