"""Options that are accepted and have no effect. Each warns once, by name.

The rule: an option whose absence could show in results, memory, waiting times or checks is in this table and warns
when it is given. A hint for speed alone is silent: `fused`, `foreach`, `non_blocking`, `assume_unique`, a `driver`.
tests/core/test_idle.py checks every parameter of the public surface.
"""

from __future__ import annotations

from typing import Any, Final

from weft.core.program_line import warn

FUSES = "the compiler fuses by itself"
LAYOUTS = "enable_auto_parallel() has one search and one cost model, and keeps the program's layouts"
ORDER = "the compiler chooses order and memory by itself"
COMPILERS = "enable_inductor() hands runs of calls to another compiler"
CUDNN = "flow.backends.cudnn.benchmark controls how convolutions are chosen"
ALONE = "collectives travel one by one, each as soon as its operands are there"
WAITS = "a wait ends when its peers have come or failed, or after WEFT_DEADLINE seconds"

IDLE: Final[dict[str, str]] = {
    **{f"config.{name}": why for name, why in {
        "allow_fuse_add_to_output": FUSES, "allow_fuse_cast_scale": FUSES, "allow_fuse_model_update_ops": FUSES,
        "enable_auto_parallel_ignore_user_sbp_config": LAYOUTS, "enable_auto_parallel_mainstem_algo": LAYOUTS,
        "enable_auto_parallel_prune_parallel_cast_ops": LAYOUTS,
        "enable_auto_parallel_sbp_collector": LAYOUTS, "enable_auto_parallel_trunk_algo": LAYOUTS,
        "enable_auto_memory": "set_memory_budget(bytes) says how much memory a rank may take",
        "enable_choose_best_memory_allocation": ORDER, "enable_compress_memory": ORDER,
        "enable_cudnn_conv_heuristic_search_algo": CUDNN, "enable_cudnn_fused_normalization_add_relu": CUDNN,
        "enable_fused_model_update_cast": FUSES, "enable_multi_tensor_update": FUSES,
        "enable_openvino": COMPILERS,
        "enable_straighten_algorithm": ORDER, "enable_tensorrt": COMPILERS, "enable_xla_jit": COMPILERS,
        "set_auto_parallel_computation_cost_ratio": LAYOUTS,
        "set_auto_parallel_transfer_cost": LAYOUTS, "set_auto_parallel_wait_time": LAYOUTS,
        "set_zero_redundancy_optimizer_min_size_after_split": "enable_zero(shard_min_size=) says which are split",
        "proto.set_enable_inplace": ORDER, "proto.set_prune_parallel_cast_ops": FUSES,
    }.items()},
    "boxing.enable_fusion": ALONE,
    **{f"boxing.nccl.{name}": ALONE for name in (
        "allow_fuse_all_gather", "allow_fuse_all_reduce", "allow_fuse_broadcast", "allow_fuse_mixed_ops",
        "allow_fuse_reduce", "allow_fuse_reduce_scatter", "disable_group_boxing_by_dst_parallel", "enable_all_to_all",
        "enable_use_buffer_to_fuse_all_reduce", "enable_use_compute_stream", "set_fusion_max_ops_num",
        "set_fusion_threshold_mbytes", "set_stream_num",
    )},
    **{f"backends.cudnn.{name}": CUDNN for name in (
        "enable_conv_heuristic_search_algo", "enable_fused_normalization_add_relu", "set_reserved_mem_mbytes",
    )},
    "config.enable_auto_parallel()": "layouts are those of global tensors, and the graph has none",
    "config.set_outputs_buffer_size(value)":
        "the graph is one chain, whose thread reads inputs and writes outputs, too: no launch can run ahead",
    "config.enable_zero(shard_restore_level)": "the stage determines how long a parameter is gathered",
    "Graph.add_optimizer(is_sparse)": "SGD alone, without momentum or weight decay, updates rows",
    "with_dynamic_input_shape(enable_shared)": "the graphs of all forms have the same modules, and so share variables",
    **{f"Graph.debug({name})": "an op records the program's line, not the whole stack"
       for name in ("max_py_stack_depth", "only_user_py_stack", "op_repr_with_py_stack")},
    "vmap(chunk_size)": "slices are computed one by one or together, as the ops allow",
    "jacrev(chunk_size)": "rows are computed one by one already",
    "jacfwd(randomness)": "the function runs once, and draws once for all columns",
    "jvp(strict)": "a result that doesn't depend on an argument has a derivative of zero",
    "checkpoint(debug)": "differences in the recomputation aren't traced",
    "checkpoint(determinism_check)": "recomputed values aren't compared with the first ones",
    "load(map_location)": "a file doesn't say which device a tensor lay on, so there is none to map: give a device",
    "fork_rng(devices)": "every device's generator is forked",
    **{f"distributed.{name}(timeout)": WAITS
       for name in ("barrier", "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration",
                    "Work.wait")},
    "distributed.monitored_barrier(wait_all_ranks)": "the first rank that failed is named, by whoever waits for it",
    **{f"distributed.{name}(tag)": "messages between two ranks arrive in the order of sending, whatever their tag"
       for name in ("isend", "irecv", "P2POp")},
    "distributed.elastic record(error_handler)": "errors are always reported to the other ranks and to the launcher",
    "embedding(sparse)": "a global tensor's gradient is dense",
    "gather(sparse_grad)": "the gradient is dense",
    **{f"profile({name})": "a profile holds the calls with their operands' shapes and their times, and no more"
       for name in ("profile_memory", "with_stack", "with_flops", "with_modules", "experimental_config", "acc_events",
                    "execution_trace_observer", "use_cuda", "custom_trace_id_callback", "post_processing_timeout_s",
                    "record_bandwidth_for_cuda")},
    "DistributedDataParallel(gradient_as_bucket_view)": "gradients are copied into buckets, and their means back",
    "LAMB(amsgrad)": "the update doesn't use the maximum of squared gradients",
}  # fmt: skip

_said: set[str] = set()


def idle(name: str, given: Any = True) -> None:
    """Warn, once in a process, that an option of the table has no effect, if it is given and not "off"."""
    if given is None or given is False or (type(given) is int and given == 0) or name in _said:
        return
    _said.add(name)
    warn(f"{name} has no effect here: {IDLE[name]}")
