"""Tensors that say they are on a CUDA device, and the kernels that are launched with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.emulated.streams import Stream, current_stream, here, host, index_of, keep, merge, permitted, touch

aten = torch.ops.aten
# What takes operands of several devices; what waits for its result, as its form depends on values; what says itself
# which memory it has.
ANYWHERE = {aten.copy_, aten._to_copy, aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_, aten.set_}
ON_HOST = {aten._local_scalar_dense, aten.nonzero, aten.equal, aten._unique2, aten.masked_select}


class OnCuda(Tensor):
    """`at` is the index of its device."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    at = 0
    is_cuda, is_cpu = True, False

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.at)

    @property
    def data(self) -> Tensor:
        return on_cuda(Tensor.data.__get__(self), self.at)

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor.data.__set__(self, value)

    def record_stream(self, stream: Stream) -> None:
        keep(self, stream)

    def get_device(self) -> int:
        return self.at

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy it first")


def on_cuda(t: Tensor, at: int) -> OnCuda:
    made: Any = t if isinstance(t, OnCuda) else Tensor._make_subclass(OnCuda, t, t.requires_grad)
    made.at = at
    return made


def to(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x.to`: torch's own would ask where the memory is."""
    memory, copy, _ = (kwargs.pop(name, None) for name in ("memory_format", "copy", "non_blocking"))
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    assert not kwargs, kwargs
    for a in args:
        if isinstance(a, Tensor):
            device, dtype = a.device, a.dtype
        elif isinstance(a, torch.dtype):
            dtype = a
        elif isinstance(a, (str, torch.device)):
            device = a
    device = x.device if device is None else torch.device(device)
    if device.type == "cuda":
        device = torch.device("cuda", index_of(device))
    if device == x.device and dtype in (None, x.dtype) and not copy and memory is None:
        return x
    return aten._to_copy(x, dtype=dtype, device=device, memory_format=memory)


def tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors(v)


# ---- launching ----------------------------------------------------------------------------------------------


def launch(func: Any, args: Sequence[Any], kwargs: dict[str, Any], checked: bool = True) -> Any:
    """Run a kernel; unless it is being captured, its accesses are checked."""
    packet, named = func.overloadpacket, enumerate(func._schema.arguments)
    given = [(a, t) for i, a in named for t in tensors(args[i] if i < len(args) else kwargs.get(a.name))]
    there = {t.at for _, t in given if isinstance(t, OnCuda)}
    asked = kwargs.get("device")
    if here.composing is not None and not given and (asked is None or asked.type == "cpu"):
        asked = torch.device("cuda", here.composing)
    to_cuda = asked is not None and asked.type == "cuda"
    if not (there or to_cuda):
        return func(*args, **({**kwargs, "pin_memory": False} if kwargs.get("pin_memory") else kwargs))
    if packet not in ANYWHERE:
        _on_one_device([t for _, t in given])
    kwargs = {name: v for name, v in kwargs.items() if name != "pin_memory"}
    if to_cuda and "device" in kwargs:
        kwargs["device"] = torch.device("cpu")
    at = index_of(asked) if to_cuda else -1 if asked is not None else min(there)
    stream = current_stream(min(there) if there else at)
    stream.step()
    checked = checked and not func.is_view and packet is not aten.set_
    for a, t in given if checked else ():
        if isinstance(t, OnCuda):
            touch(t, a.alias_info is not None and a.alias_info.is_write, stream, str(func))
    result = INSTEAD.get(packet, func)(*args, **kwargs)
    known = {id(t) for _, t in given}
    memory = {t.untyped_storage()._cdata for _, t in given if t.layout is torch.strided}

    def made(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(made, value)) if type(value) in (list, tuple) else tuple(map(made, value))
        if not isinstance(value, Tensor) or id(value) in known or at < 0 or value.is_meta:
            return value
        new = on_cuda(value, at)
        if checked and value.layout is torch.strided and value.untyped_storage()._cdata not in memory:
            touch(new, True, stream, str(func), fresh=True)
        return new

    if packet in ON_HOST or at < 0 or (packet is aten.copy_ and not isinstance(args[0], OnCuda)):
        permitted()
        merge(host, stream.clock)
    return made(result)


def _on_one_device(given: Sequence[Tensor]) -> None:
    found = {str(t.device) for t in given if t.device.type != "meta" and (t.is_cuda or t.dim())}
    if len(found) > 1:
        one, other, *_ = sorted(found, reverse=True)
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!"
        )


class Launching(TorchDispatchMode):
    """Each kernel that this thread calls."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return (launch if here.capture is None else here.capture.record)(func, args, kwargs or {})


class Composing(TorchFunctionMode):
    """While torch's own code computes from tensors on a device, those that it makes are there, too."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, before = kwargs or {}, here.composing
        if func is torch._fused_sdp_choice:
            plain = args[3] is None and args[0].shape[-1] == args[2].shape[-1]
            return (SDPBackend.FLASH_ATTENTION if plain else SDPBackend.EFFICIENT_ATTENTION).value
        if func in (torch.tensor, torch.as_tensor) and kwargs.get("device") is not None:
            return to(func(*args, **{**kwargs, "device": "cpu"}), kwargs["device"])
        here.composing = next((t.at for t in tensors([*args, *kwargs.values()]) if isinstance(t, OnCuda)), before)
        try:
            return func(*args, **kwargs)
        finally:
            here.composing = before


# ---- kernels that the CPU lacks -----------------------------------------------------------------------------

FORWARD = aten._scaled_dot_product_flash_attention_for_cpu
BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward


def _flash(q: Tensor, k: Tensor, v: Tensor, drop: Any = 0.0, is_causal: Any = False, *_: Any, scale: Any = None) -> Any:
    y, sums = FORWARD(q, k, v, drop, is_causal, scale=scale)
    none = q.new_empty(0)
    return y, sums, none, none, q.shape[2], k.shape[2], none, none, none


def _flash_backward(
    dy: Any, q: Any, k: Any, v: Any, y: Any, sums: Any, cq: Any, ck: Any, mq: Any, mk: Any, drop: Any, is_causal: Any,
    *_: Any, scale: Any = None,
) -> Any:  # fmt: skip
    return BACKWARD(dy, q, k, v, y, sums, drop, is_causal, scale=scale)


def _efficient(
    q: Any, k: Any, v: Any, bias: Any, _: Any, drop: Any = 0.0, is_causal: Any = False, *, scale: Any = None
) -> Any:
    assert bias is None or bias.stride(-2) % 8 == 0
    scale, width = scale or q.shape[-1] ** -0.5, v.shape[-1]
    y, sums = FORWARD(*_as_wide(q, k, v), drop, is_causal, attn_mask=bias, scale=scale)
    return y[..., :width], torch.nn.functional.pad(sums, (0, -q.shape[2] % 32)), q.new_empty(0), q.new_empty(0)


def _efficient_backward(
    dy: Any, q: Any, k: Any, v: Any, bias: Any, y: Any, sums: Any, seed: Any, offset: Any, drop: Any, wanted: Any,
    is_causal: Any = False, *, scale: Any = None,
) -> Any:  # fmt: skip
    assert sums.shape[-1] % 32 == 0
    sums, scale = sums[..., : q.shape[2]].contiguous(), scale or q.shape[-1] ** -0.5
    found = BACKWARD(*_as_wide(dy, q, k, v, y), sums, drop, is_causal, attn_mask=bias, scale=scale)
    return *(g[..., : t.shape[-1]] for g, t in zip(found, (q, k, v), strict=True)), q.new_empty(0)


def _as_wide(*given: Tensor) -> list[Tensor]:
    """With zeros behind shorter rows, which change no product."""
    width = max(t.shape[-1] for t in given)
    return [torch.nn.functional.pad(t, (0, width - t.shape[-1])) for t in given]


INSTEAD: dict[Any, Any] = {
    aten._scaled_dot_product_flash_attention: _flash,
    aten._scaled_dot_product_flash_attention_backward: _flash_backward,
    aten._scaled_dot_product_efficient_attention: _efficient,
    aten._scaled_dot_product_efficient_attention_backward: _efficient_backward,
}
