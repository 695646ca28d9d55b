"""`FullyShardedDataParallel`, PyTorch's first way of sharding: `fully_shard` with its options and its states."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np

import weft.distributed.fsdp.wrap as wrapping
from weft.autograd import no_grad
from weft.core.dtype import float32
from weft.core.errors import ArgumentError, OptionError
from weft.core.rank import current
from weft.core.stored import stored
from weft.distributed.checkpoint.state_dict import (
    KIND,
    StateDictOptions,
    get_optimizer_state_dict,
    numbered,
    set_optimizer_state_dict,
    whole,
)
from weft.distributed.fsdp.api import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictSettings,
    StateDictType,
)
from weft.distributed.mesh import DeviceMesh
from weft.functional.training.clipping import clip_grad_norm
from weft.nn.module.module import Module
from weft.parallel.fsdp import fully_shard
from weft.parallel.policies import MixedPrecisionPolicy
from weft.parallel.sharded import KEY
from weft.parallel.unwrapped import is_unwrapped, mark, unwrapped
from weft.tensor.tensor import Tensor

M = TypeVar("M", bound=Module)
MIXED: Final = "_mixed_precision"  # the attribute of a wrapped module for its MixedPrecision


def _mesh(strategy: str, process_group: Any, mesh: DeviceMesh | None) -> DeviceMesh:
    """The ranks as a grid: replicas, and what is split."""
    if isinstance(process_group, tuple):
        inside = len(process_group[0])
        mesh = DeviceMesh("cpu", np.arange(current().world_size).reshape(-1, inside))
        if list(mesh.get_group(1)) != list(process_group[0]) or list(mesh.get_group(0)) != list(process_group[1]):
            raise ArgumentError(f"FullyShardedDataParallel(process_group={process_group}): give device_mesh instead")
    elif mesh is None:
        mesh = DeviceMesh("cpu", range(current().world_size) if process_group is None else list(process_group))
    ranks = mesh.mesh.numpy()
    if strategy == "NO_SHARD":
        return DeviceMesh(mesh.device_type, ranks.reshape(-1, 1))
    if "HYBRID" in strategy and mesh.ndim == 1:
        return DeviceMesh(mesh.device_type, ranks.reshape(-1, min(current().local_size, ranks.size)))
    return mesh


def _policy(mixed: Any, outermost: bool) -> MixedPrecisionPolicy:
    if mixed is None:
        return MixedPrecisionPolicy()
    casts = mixed.cast_forward_inputs or (outermost and mixed.cast_root_forward_inputs)
    return replace(MixedPrecisionPolicy.of(_Kinds(mixed)), cast_forward_inputs=bool(casts))


class _Kinds:
    """A MixedPrecision, read as a policy of `fully_shard`."""

    output_dtype = None

    def __init__(self, mixed: Any) -> None:
        self.param_dtype, self.reduce_dtype = mixed.param_dtype, mixed.reduce_dtype
        self.cast_forward_inputs = mixed.cast_forward_inputs


def _wrap_inner(module: Module, policy: Any, ignored: set[Module], params: set[Any], options: dict[str, Any]) -> None:
    """Wrap the submodules that a policy names, by torch's own policies."""
    torchs: Any = wrapping
    if isinstance(policy, torchs._Policy):
        found = policy._run_policy(module, ignored, options)
        torchs._post_order_apply(module, torchs._construct_wrap_fn(module, found, FullyShardedDataParallel))
    else:
        torchs._recursive_wrap(
            module, policy, FullyShardedDataParallel, ignored, params, only_wrap_children=True, **options
        )


def _materialize(module: Module, init: Any) -> None:
    """Give parameters on the meta device memory and values."""
    for m in module.modules():
        if any(p is not None and p.is_meta for p in m._parameters.values()):
            if init is not None:
                init(m)
                continue
            m.to_empty(device="cpu", recurse=False)
            m.reset_parameters()


def _apart(module: Module, mixed: Any, mesh: DeviceMesh) -> None:
    """Batch norms and the like compute in float32, whatever surrounds them."""
    if mixed is None or mixed.param_dtype is None:
        return
    for m in module.modules():
        if isinstance(m, tuple(mixed._module_classes_to_ignore)) and KEY not in stored(m):
            fully_shard(m, mesh=mesh, mp_policy=MixedPrecisionPolicy(float32, float32, mixed.param_dtype))


class _Kind(type):
    def __instancecheck__(cls, module: Any) -> bool:
        return isinstance(module, Module) and MIXED in stored(module) and not is_unwrapped(module)


class FullyShardedDataParallel(metaclass=_Kind):
    """Shard a module's parameters over the ranks, and those of the submodules that `auto_wrap_policy` names by
    themselves; returns the module itself, which keeps its type and its names.

    It is `fully_shard` with PyTorch's options of before: a `sharding_strategy`, a `mixed_precision`. Parameters and
    buffers are always broadcast from the first rank, and parameters keep their shapes. `state_dict()` gives whole
    values, unless `state_dict_type` says otherwise. Options of prefetching and offloading have no effect.
    """

    def __new__(
        cls, module: M, process_group: Any = None, sharding_strategy: Any = None, cpu_offload: Any = None,
        auto_wrap_policy: Any = None, backward_prefetch: Any = None, mixed_precision: Any = None,
        ignored_modules: Iterable[Module] | None = None, param_init_fn: Any = None, device_id: Any = None,
        sync_module_states: bool = False, forward_prefetch: bool = False, limit_all_gathers: bool = True,
        use_orig_params: bool = False, ignored_states: Iterable[Any] | None = None,
        device_mesh: DeviceMesh | None = None,
    ) -> M:  # fmt: skip
        if not isinstance(module, Module):
            raise ArgumentError(f"FullyShardedDataParallel takes a module; got {type(module).__name__}")
        strategy = getattr(sharding_strategy, "name", "FULL_SHARD")
        mesh = _mesh(strategy, process_group, device_mesh)
        given = [*(ignored_modules or ()), *(ignored_states or ())]
        left = {inner for m in given if isinstance(m, Module) for inner in m.modules()}
        params = {p for m in left for p in m.parameters()} | {p for p in given if not isinstance(p, Module)}
        if auto_wrap_policy is not None:
            options = {"sharding_strategy": sharding_strategy, "mixed_precision": mixed_precision,
                       "param_init_fn": param_init_fn, "ignored_states": params, "device_mesh": mesh}  # fmt: skip
            _wrap_inner(module, auto_wrap_policy, left, params, options)
        _materialize(module, param_init_fn)
        _apart(module, mixed_precision, mesh)
        fully_shard(
            module, mesh=mesh, ignored_params=params, mp_policy=_policy(mixed_precision, True),
            reshard_after_forward=False if strategy in ("SHARD_GRAD_OP", "_HYBRID_SHARD_ZERO2") else None,
        )  # fmt: skip
        for m in FullyShardedDataParallel.fsdp_modules(module):
            stored(m)[KEY].policy = _policy(stored(m)[MIXED], False)
        for b in module.buffers() if getattr(mixed_precision, "buffer_dtype", None) is not None else ():
            if b.dtype.is_floating_point:
                b.data = b.detach().to(mixed_precision.buffer_dtype)
        _equip(module, mixed_precision)
        return module

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Module]:
        """The wrapped modules in a module, itself too; or the outermost of them."""
        found = [(path, m) for path, m in module.named_modules() if isinstance(m, FullyShardedDataParallel)]
        if root_only:
            outer = [f"{path}." if path else "" for path, _ in found]
            found = [(p, m) for p, m in found if not any(p != o.rstrip(".") and p.startswith(o) for o in outer)]
        return [m for _, m in found]

    # ---- states --------------------------------------------------------------------------------------

    @staticmethod
    def set_state_dict_type(
        module: Module, state_dict_type: Any, state_dict_config: Any = None, optim_state_dict_config: Any = None
    ) -> Any:
        """Say what `state_dict()` and `optim_state_dict` give: whole or sharded tensors; returns what held before."""
        if state_dict_type.name == "LOCAL_STATE_DICT":
            raise OptionError("set_state_dict_type(LOCAL_STATE_DICT): use SHARDED_STATE_DICT, whose tensors are global")
        full = state_dict_type.name == "FULL_STATE_DICT"
        settings = StateDictSettings(
            state_dict_type,
            state_dict_config or (FullStateDictConfig() if full else ShardedStateDictConfig()),
            optim_state_dict_config or (FullOptimStateDictConfig() if full else ShardedOptimStateDictConfig()),
        )
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for m in FullyShardedDataParallel.fsdp_modules(module):
            stored(m)[KIND] = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> Any:
        return next(stored(m)[KIND] for m in FullyShardedDataParallel.fsdp_modules(module))

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module, state_dict_type: Any, state_dict_config: Any = None, optim_state_dict_config: Any = None
    ) -> Iterator[None]:
        """`set_state_dict_type` for a while."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for m in FullyShardedDataParallel.fsdp_modules(module):
                stored(m)[KIND] = before

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, optim_state_dict: Any = None, group: Any = None) -> dict[str, Any]:
        """An optimizer's state by parameters' names, in the form that `state_dict_type` says."""
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        full = settings.state_dict_type.name == "FULL_STATE_DICT"
        one = full and getattr(settings.optim_state_dict_config, "rank0_only", False)
        return get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=full, cpu_offload=one))

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Any, optim_state_dict: Mapping[str, Any], is_named_optimizer: bool = False,
        load_directly: bool = False, group: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """A state of `optim_state_dict`, as `optim.load_state_dict` takes it."""
        if load_directly:
            set_optimizer_state_dict(model, optim, optim_state_dict)
        return numbered(model, optim, optim_state_dict)

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """An optimizer's state by names, of whole values; empty on the others with `rank0_only`."""
        options = StateDictOptions(full_state_dict=True, cpu_offload=rank0_only)
        return get_optimizer_state_dict(model, optim, options=options)

    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Any, group: Any = None) -> dict[str, Any]:
        return get_optimizer_state_dict(model, optim)

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: Mapping[str, Any], model: Module, optim_input: Any = None, optim: Any = None
    ) -> dict[str, Any]:
        return numbered(model, optim, full_optim_state_dict)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: Any, model: Module, optim_input: Any = None, optim: Any = None, group: Any = None
    ) -> dict[str, Any]:
        """As `optim_state_dict_to_load`, of a state that only the first rank has."""
        return numbered(model, optim, full_optim_state_dict, StateDictOptions(broadcast_from_rank0=True))

    # ---- whole values --------------------------------------------------------------------------------

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
        offload_to_cpu: bool = False, with_grads: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        """Inside, parameters are whole on every rank; what is written into them is kept with `writeback`."""
        if with_grads:
            raise OptionError("summon_full_params(with_grads=True): p.grad.full_tensor() is a shard's whole gradient")
        every = [stored(m)[KEY] for m in (module.modules() if recurse else [module]) if KEY in stored(m)]
        for parts in every:
            parts.unshard()
        try:
            yield
        finally:
            for parts in every:
                if writeback:
                    parts.write_back()
                parts.reshard()


def _equip(module: Module, mixed: Any) -> None:
    """Give a module PyTorch's methods and attributes of a wrapped one."""
    own = stored(module)
    own[MIXED] = mixed
    own[KIND] = StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig())
    inside = unwrapped(module)
    mark(module, functools.partial(_no_sync, module), module=inside, _fsdp_wrapped_module=inside)
    own["clip_grad_norm_"] = functools.partial(_clip, module)
    module.register_state_dict_post_hook(_as_said)


def _as_said(module: Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    """A hook: whole values where `state_dict_type` says so."""
    settings = stored(module).get(KIND)
    if settings is None or settings.state_dict_type.name != "FULL_STATE_DICT":
        return
    elsewhere = getattr(settings.state_dict_config, "rank0_only", False) and current().index
    for name in [n for n in state if n.startswith(prefix)]:
        state[name] = whole(state[name])
        if elsewhere:
            del state[name]


@contextlib.contextmanager
def _no_sync(module: Module) -> Iterator[None]:
    """Accumulate gradients on each rank, which join the next average."""
    every = [stored(m)[KEY] for m in module.modules() if KEY in stored(m)]
    before = [parts.requires_gradient_sync for parts in every]
    try:
        for parts in every:
            parts.requires_gradient_sync = False
        yield
    finally:
        for parts, found in zip(every, before, strict=True):
            parts.requires_gradient_sync = found


def _clip(module: Module, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Clip the gradients of all ranks by their norm, which it returns."""
    with no_grad():
        norm = clip_grad_norm(module.parameters(), max_norm, norm_type)
    return whole(norm)
