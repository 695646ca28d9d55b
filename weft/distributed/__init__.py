"""`flow.distributed`: `torch.distributed`'s API for local tensors, over Weft's transports.

A program written for `torch.distributed` finds its groups, collectives and messages here. The transport is chosen by
where the ranks are, whatever backend is named. The launcher is also
`python -m weft.distributed.launch`.
"""

from weft.core.derived import GIVEN
from weft.core.errors import RankError
from weft.distributed import algorithms, checkpoint, fsdp, optim, pipelining, tensor
from weft.distributed.collectives import (
    ReduceOp,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from weft.distributed.groups import (
    Backend,
    GroupMember,
    ProcessGroup,
    _get_default_group,
    destroy_process_group,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from weft.distributed.mesh import DeviceMesh, init_device_mesh
from weft.distributed.messages import P2POp, Work, batch_isend_irecv, irecv, isend, recv, send
from weft.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from weft.transport import FileStore, HashStore, PrefixStore, Store, TCPStore

DistError = DistBackendError = DistNetworkError = DistStoreError = RankError  # communication errors
GIVEN["torch.distributed.distributed_c10d._get_default_group"] = _get_default_group
GIVEN["torch.distributed.distributed_c10d.get_global_rank"] = get_global_rank

__all__ = [
    "Backend", "DeviceMesh", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore",
    "GroupMember", "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "ReduceOp", "Store", "TCPStore", "Work",
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "algorithms", "all_to_all",
    "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "checkpoint",
    "destroy_process_group", "fsdp", "gather", "gather_object", "get_backend", "get_default_backend_for_device",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank",
    "get_world_size", "group", "init_device_mesh", "init_process_group", "irecv", "is_available",
    "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "isend", "monitored_barrier", "new_group", "new_subgroups",
    "new_subgroups_by_enumeration", "optim", "pipelining", "recv", "recv_object_list", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "scatter_object_list", "send", "send_object_list", "tensor",
]  # fmt: skip
