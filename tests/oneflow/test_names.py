"""OneFlow 0.9's public names: all are here, but for those below, each with its reason."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

import weft as flow

NAMES: dict[str, list[str]] = {
    section: names.split()
    for section, names in json.loads(Path(__file__).with_name("oneflow_names.json").read_text()).items()
}

FILES = "reads files in a format of OneFlow's own, or the records in them; data comes through flow.utils.data"
BUFFERS = "tensors whose elements are byte strings, which only OneFlow's own file readers make"
TABLES = "sparse embedding tables with their storage, a system beside OneFlow"
BACKEND = "a kernel that OneFlow's own Python calls; the name that users call is here"
PROTOBUF = "shows OneFlow's protocol buffers; a graph has text here: graph.job, graph.plan, graph.source()"
INSIDE = "how OneFlow's classes work inside; nothing a program calls"
OLD = "marks names of OneFlow's that are on their way out, or where its files lie"
DATAPIPES = "data pipes, which PyTorch gave up; datasets, samplers and loaders are here"

ABSENT: dict[str, dict[str, str]] = {
    "flow.*": {
        FILES: "decode_onerec",
        BUFFERS: """gen_tensor_buffer tensor_buffer tensor_buffer_to_list_of_tensors tensor_buffer_to_tensor
            tensor_to_tensor_buffer""",
        OLD: "is_deprecated oneflow_deprecate oneflow_internal_path oneflow_python_base_dir record",
        INSIDE: "FunctionConfig dtypes function_config stateful_op",
    },
    "flow.nn": {
        FILES: """COCOReader CropMirrorNormalize GPTIndexedBinDataReader OFRecordBytesDecoder OFRecordImageDecoder
            OFRecordImageDecoderRandomCrop OFRecordImageGpuDecoderRandomCropResize OFRecordRawDecoder OFRecordReader
            OfrecordRawDecoder OfrecordReader OneRecReader RawReader"""
    },
    "flow.nn.image": {BUFFERS: "Resize batch_align decode flip normalize"},
    "flow.utils.data": {
        DATAPIPES: "IterDataPipe functional_datapipe guaranteed_datapipes_determinism non_deterministic"
    },
    "flow.profiler": {"starts and stops CUDA's own profiler": "profiler_start profiler_stop"},
    "flow.one_embedding": {
        TABLES: """Module OneEmbeddingHandler Parameter PersistentTableReader PersistentTableWriter
        make_persistent_table_reader make_persistent_table_writer"""
    },
    "flow.mock_torch": {INSIDE: "Loader MetaPathFinder ModuleSpec OneflowImporter find_spec"},
    "flow.Tensor methods": {
        INSIDE: "_register_storage_delete_hook",
        BUFFERS: "_tensor_buffer_shapes_and_dtypes",
    },
    "flow._C": {
        FILES: """decode_onerec dispatch_coco_reader dispatch_crop_mirror_normalize_from_tensorbuffer
            dispatch_crop_mirror_normalize_from_uint8 dispatch_megatron_gpt_mmap_data_loader
            dispatch_image_batch_align dispatch_image_decode dispatch_image_decoder_random_crop_resize
            dispatch_image_normalize dispatch_image_resize_keep_aspect_ratio dispatch_image_resize_to_fixed
            dispatch_ofrecord_bytes_decoder dispatch_ofrecord_image_decoder
            dispatch_ofrecord_image_decoder_random_crop dispatch_ofrecord_raw_decoder dispatch_ofrecord_reader
            dispatch_onerec_reader dispatch_raw_reader image_flip""",
        BUFFERS: """dispatch_tensor_buffer_to_list_of_tensors_v2 gen_tensor_buffer tensor_buffer_to_tensor
            tensor_to_tensor_buffer""",
        TABLES: " ".join(n for n in NAMES["flow._C"] if n.startswith("one_embedding_")),
        BACKEND: """batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt
            batch_norm_gather_stats_with_counts batch_norm_stats binary_cross_entropy_with_logits_loss_grad
            dispatch_adadelta_update dispatch_adagrad_update dispatch_adam_update dispatch_coin_flip
            dispatch_distributed_partial_fc_sample
            dispatch_eager_ccl_all_reduce dispatch_feed_input dispatch_feed_variable dispatch_fetch_output
            dispatch_ftrl_update dispatch_lamb_update dispatch_momentum_update dispatch_rmsprop_update
            dispatch_sgd_update multi_tensor_adam_update multi_tensor_momentum_update multi_tensor_sgd_update
            multi_tensor_yolov5_weight_update reduce_max_device_stage reduce_max_global_stage
            reduce_min_device_stage reduce_min_global_stage""",
    },
    "nn.Module methods": {INSIDE: "_shallow_repr"},
    "nn.Graph methods": {
        PROTOBUF: "_generate_config_proto _ops_repr _optimization_conf_proto",
        INSIDE: """_add_module _child_init_cnt _create_states_builder _filter_states _generate_name
            _mark_variable_gradients _state build_graph finish_complie_and_init_runtime""",
    },
    "nn.Graph().config": {INSIDE: "_generate_optimizer_and_variable_configs _outputs_buffer_size _train"},
}


def home(section: str) -> Any:
    """What a section of names belongs to."""
    if section == "flow.*":
        return flow
    if section in ("flow.Tensor methods", "flow.Tensor dunders"):
        return flow.Tensor
    if section == "flow._C":
        return flow._C
    if section == "nn.Module methods":
        return flow.nn.Module
    if section.startswith("nn.Graph"):

        class Any_(flow.nn.Graph):
            def build(self, x: Any) -> Any:
                return x

        return Any_().config if section.endswith("config") else flow.nn.Graph
    try:
        return importlib.import_module(section.replace("flow", "weft", 1))
    except ModuleNotFoundError:
        return None


@pytest.mark.parametrize("section", NAMES)
def test_every_name_is_here_or_has_a_reason_not_to_be(section: str) -> None:
    where = home(section)
    left_out = [name for names in ABSENT.get(section, {}).values() for name in names.split()]
    missing = {name for name in NAMES[section] if where is None or not hasattr(where, name)}
    assert len(left_out) == len(set(left_out))
    assert missing - set(left_out) == set(), "names of OneFlow's that nothing here stands for"
    assert set(left_out) - missing == set(), "names that are said to be absent and are here: take them off the list"


def test_what_is_left_out_is_OneFlows_and_says_why() -> None:
    for section, reasons in ABSENT.items():
        assert {n for names in reasons.values() for n in names.split()} <= set(NAMES[section])
        assert all(len(reason) > 20 for reason in reasons)
