"""Keep attention's probabilities for its gradient: to read them takes less time than to compute them again. Pure.

That is so where the gradient is computed by products of blocks. The probabilities take more memory than what the
gradient reads otherwise, but stay in their chain: so both are in one, and nothing else reads them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

import torch

from weft.boxing.signature import Signature
from weft.job.value import Node, Value
from weft.ops.neural.causal_attention import half_hidden, kept_shape


def kept(nodes: Sequence[Node], leaving: Container[Value], rank: int, threads: int) -> list[Node]:
    """A chain's nodes, with attention that gives its probabilities to its gradient; other chains read the values
    `leaving`. What is computed again is asked to take less memory, and stays."""
    readers: dict[Value, list[Node]] = {}
    for n in nodes:
        for v in n.operands():
            readers.setdefault(v, []).append(n)
    instead: dict[Node, Node] = {}
    for n in nodes:
        if n.op != "scaled_dot_product_attention" or n.extra.get("again"):
            continue
        q, k, v, mask, is_causal, scale = n.args
        y, logsumexp = n.outputs
        grads = readers.get(logsumexp, [])
        if not grads or logsumexp in leaving or not all(_reads_the_same(r, n) for r in grads):
            continue
        parts = [torch.empty(x.local_shape(rank), dtype=x.dtype.torch, device="meta") for x in (q, k, v)]
        if y.device_type != "cpu" or not half_hidden(parts[0], parts[1], parts[2], mask, is_causal, threads):
            continue
        shape, spec = kept_shape(logsumexp.shape), logsumexp.spec
        p = Value(
            f"{logsumexp.name}.kept", shape, y.dtype, None if spec is None else spec.replace(shape=shape), y.device
        )
        instead[n] = _other(n, "causal_attention", (q, k, v, scale), (y, p))
        for r in grads:
            instead[r] = _other(r, "causal_attention_grad", (r.args[0], q, k, v, p, scale), r.outputs)
    return [instead.get(n, n) for n in nodes]


def _reads_the_same(grad: Node, n: Node) -> bool:
    """Whether it is the gradient of this attention."""
    return grad.op == "attention_grad" and (*grad.args[1:4], *grad.args[6:]) == n.args


def _other(n: Node, op: str, args: tuple[object, ...], outputs: tuple[Value, ...]) -> Node:
    made = replace(n, op=op, args=args, outputs=outputs, signature=None)
    if n.signature is not None:
        ins, outs = (tuple(v.spec for v in vs if v.spec is not None) for vs in (made.operands(), outputs))
        made.signature = Signature(n.signature.placement, ins, outs, ranked=False)
    return made
