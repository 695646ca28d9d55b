# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.pipelining._backward."""

from collections.abc import Iterator
import torch
from typing import Any
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

def construct_reverse_graph(roots: list[torch.Node]) -> dict[torch.Node, list[torch.Node]]: ...
def get_param_groups(
    inputs: list[torch.Node], params: list[torch.Node], reverse_edges_dict: Any
) -> list[dict[str, Any]]: ...
def reverse_closure(
    roots: list[torch.Node], target_nodes: set[torch.Node], reverse_edges_dict: Any
) -> tuple[set[torch.Node], set[torch.Node]]: ...
def stage_backward(
    stage_output: Any, output_grads: Any, input_values: Any, outputs_with_grads_idxs: list[int] | None = None
) -> tuple[Tensor | None, ...]: ...
def stage_backward_weight(
    weights: Iterator[Parameter], param_groups: list[dict[str, Any]], retain_graph: Any = False
) -> tuple[Tensor | None, ...]: ...
