"""Ranks and groups of them, as `torch.distributed` names them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlparse

import torch

from weft.core.errors import ArgumentError, RankError
from weft.core.idle import idle
from weft.core.rank import current, from_environment
from weft.transport import join

JOINED: Final = "distributed"  # the name of the resource of a rank that joined
KNOWN: Final = ("gloo", "nccl", "mpi", "ucc")


class Backend:
    """Names of backends, for comparison."""

    UNDEFINED, GLOO, NCCL, MPI, UCC = "undefined", "gloo", "nccl", "mpi", "ucc"


class ProcessGroup:
    """Some ranks of the world, in an order; a sequence of their numbers."""

    NON_MEMBER: Final = object()

    def __init__(self, ranks: Sequence[int] | None = None) -> None:
        self._ranks = None if ranks is None else tuple(ranks)

    @property
    def ranks(self) -> tuple[int, ...]:
        """All of the world's, if none were given: a program may name them before it knows how many there are."""
        return tuple(range(current().world_size)) if self._ranks is None else self._ranks

    @property
    def group_name(self) -> str:
        return str(self.ranks)

    def __iter__(self) -> Any:
        return iter(self.ranks)

    def __len__(self) -> int:
        return len(self.ranks)

    def __getitem__(self, i: int) -> int:
        return self.ranks[i]

    def rank(self) -> int:
        """The caller's index in the group, or -1."""
        here = current().index
        return self.ranks.index(here) if here in self.ranks else -1

    def size(self) -> int:
        return len(self.ranks)

    def name(self) -> str:
        return get_backend()

    def __repr__(self) -> str:
        return f"<group of ranks {list(self.ranks)}>"


class group:
    """`group.WORLD`: everyone."""

    WORLD: Final = ProcessGroup()


def _get_default_group() -> ProcessGroup:
    return group.WORLD


class GroupMember(group):
    NON_GROUP_MEMBER: Final = ProcessGroup.NON_MEMBER


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None,
    world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None,
    device_id: Any = None,
) -> None:  # fmt: skip
    """Meet the other ranks now rather than when they are first needed. Ranks that a launcher started need no argument.

    Other processes give `rank` and `world_size`, and where to meet by `MASTER_ADDR` and `MASTER_PORT` or
    `init_method="tcp://host:port"`. The transport is chosen by where the ranks are, whatever `backend` says.
    """
    names = [part.rpartition(":")[2] for part in (backend or "gloo").lower().split(",")]
    if any(name not in KNOWN for name in names):
        raise ArgumentError(f"init_process_group(backend={backend!r}): backends are {', '.join(KNOWN)}")
    if store is not None:
        raise ArgumentError('init_process_group(): ranks meet at an address, not in a store; use init_method="env://"')
    _meet(init_method)
    here = current()
    size = here.world_size if world_size < 0 else world_size
    index = here.index if rank < 0 else rank
    if (index, size) != (here.index, here.world_size):
        if here.world_size > 1 or "transport" in here.resources:
            raise RankError(
                f"init_process_group(rank={rank}, world_size={world_size}): this is rank {here.index} of "
                f"{here.world_size} already; leave both out, or call it before anything else"
            )
        here.become(index, size, from_environment("LOCAL_RANK", index), from_environment("LOCAL_WORLD_SIZE", size))
    if JOINED in here.resources:
        raise RankError("init_process_group() was called before: a rank joins its world once")
    join(here, None if timeout is None else timeout.total_seconds())
    here.resources[JOINED] = names[-1]


def _meet(init_method: str | None) -> None:
    """Set the meeting address where the transport reads it."""
    where = urlparse(init_method or "env://")
    if where.scheme == "tcp" and where.hostname and where.port:
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = where.hostname, str(where.port)
    elif where.scheme != "env":
        raise ArgumentError(
            f"init_process_group(init_method={init_method!r}): ranks meet at env:// (MASTER_ADDR and MASTER_PORT) or "
            "at tcp://host:port"
        )


def destroy_process_group(group: Any = None) -> None:
    """Undo `init_process_group`. Transports stay open: global tensors may still need them."""
    if group in (None, GroupMember.WORLD):
        current().resources.pop(JOINED, None)


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    """Whether there are other ranks, or `init_process_group` was called."""
    here = current()
    return here.world_size > 1 or JOINED in here.resources


def is_torchelastic_launched() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_gloo_available() -> bool:
    return True


def is_nccl_available() -> bool:
    return torch.cuda.is_available()


def is_mpi_available() -> bool:
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a backend of this name, or a substitute, exists.

    >>> flow.distributed.is_backend_available("gloo"), flow.distributed.is_backend_available("mpi")
    (True, False)
    """
    return backend.lower() == "gloo" or (backend.lower() == "nccl" and is_nccl_available())


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This rank's number on its host."""
    return current().local_index


def get_rank(group: Any = None) -> int:
    """This rank's number in the world, or in a group: -1 if it is no member."""
    return current().index if group is None else _group(group).rank()


def get_world_size(group: Any = None) -> int:
    """How many ranks the world, or a group, has."""
    return current().world_size if group is None else len(_group(group))


def get_backend(group: Any = None) -> str:
    """The backend that `init_process_group` was given, or the default."""
    return current().resources.get(JOINED) or ("nccl" if torch.cuda.is_available() else "gloo")


def get_default_backend_for_device(device: Any) -> str:
    """The backend that PyTorch's programs name for a device.

    >>> flow.distributed.get_default_backend_for_device("cpu")
    'gloo'
    """
    return "nccl" if str(device).startswith("cuda") else "gloo"


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
    device_id: Any = None, sort_ranks: bool = True,
) -> Any:  # fmt: skip
    """A group of some ranks, sorted unless `sort_ranks=False`. A rank that is no member gets
    `GroupMember.NON_GROUP_MEMBER`.

    A group is a list of ranks, made without communication, so the options for that have no effect.
    """
    idle("distributed.new_group(timeout)", timeout)
    size = current().world_size
    members = tuple(range(size)) if ranks is None else tuple(ranks)
    outside = [r for r in members if not 0 <= r < size]
    if outside or len(set(members)) < len(members) or not members:
        raise RankError(f"new_group({list(members)}): a group names ranks from 0 to {size - 1}, each once")
    if current().index not in members:
        return GroupMember.NON_GROUP_MEMBER
    return ProcessGroup(sorted(members) if sort_ranks else members)


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Split the world, or a group, into subgroups of consecutive ranks: the caller's, and all. The default size is one
    host.

    >>> flow.distributed.new_subgroups(1)[0]
    <group of ranks [0]>
    """
    idle("distributed.new_subgroups(timeout)", timeout)
    whole = get_process_group_ranks(group)
    size = from_environment("LOCAL_WORLD_SIZE", len(whole)) if group_size is None else group_size
    if size < 1 or len(whole) % size:
        raise ArgumentError(f"new_subgroups(): {len(whole)} ranks don't divide into parts of {size}")
    return new_subgroups_by_enumeration([whole[i : i + size] for i in range(0, len(whole), size)])


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Disjoint groups from lists of ranks: the caller's (None, if it is in none), and all of them."""
    idle("distributed.new_subgroups_by_enumeration(timeout)", timeout)
    every = [r for ranks in ranks_per_subgroup_list for r in ranks]
    twice = sorted({r for r in every if every.count(r) > 1})
    if twice or not every:
        raise ArgumentError(f"new_subgroups_by_enumeration(): a rank is in one group at most; {twice} are in several")
    groups = [ProcessGroup(sorted(ranks)) for ranks in ranks_per_subgroup_list]
    return next((g for g in groups if g.rank() >= 0), None), groups


def get_process_group_ranks(group: Any) -> list[int]:
    return list(range(current().world_size)) if group is None else list(_group(group))


def get_global_rank(group: Any, group_rank: int) -> int:
    return get_process_group_ranks(group)[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    return get_process_group_ranks(group).index(global_rank)


def _group(group: Any) -> ProcessGroup:
    if not isinstance(group, ProcessGroup):
        raise RankError(
            f"rank {current().index} is not a member of that group"
            if group is GroupMember.NON_GROUP_MEMBER
            else f"a group is what new_group() gives; got {group!r}"
        )
    return group


def members(group: Any) -> tuple[int, ...] | None:
    """A group's ranks, in the form that `flow.comm` takes."""
    return None if group is None else _group(group).ranks


def root(what: str, rank: int | None, place: int | None, group: Any, default: int | None = None) -> int:
    """A rank of the world, given as such or by its index in the group."""
    if (rank is None) == (place is None):
        if rank is None and default is not None:
            return default
        raise ArgumentError(
            f"{what}() takes one rank, counted in the world or, as group_src or group_dst, in the group"
        )
    if rank is not None:
        return rank
    ranks = members(group) or range(get_world_size())
    assert place is not None
    if not 0 <= place < len(ranks):
        raise ArgumentError(f"{what}(): there is no index {place} in a group of {len(ranks)} ranks")
    return ranks[place]
