"""A program for OneFlow: one of libai's models, tiny and on made-up data, trained by libai's own trainer in one layout.

    python -m weft.oneflow -m oneflow.distributed.launch --nproc_per_node 4 libai_train.py gpt graph FOLDER tensor=2

Rank 0 leaves the losses in FOLDER/losses.txt. `--again 1` then begins anew from the checkpoint after step 1, as a
program that was broken off there would.
"""

import argparse
import os

import oneflow as flow
from libai.config import LazyCall
from libai.data.build import build_nlp_train_loader
from libai.data.structures import DistTensorData, Instance
from libai.engine import DefaultTrainer
from libai.engine.default import _check_batch_size
from libai.models import BertForPreTraining, GPTForPreTraining, T5ForPreTraining, VisionTransformer
from libai.models.utils.graph_base import GraphBase
from libai.optim import get_default_optimizer_params
from libai.scheduler import WarmupCosineLR
from libai.utils import distributed as dist
from omegaconf import OmegaConf

VOCABULARY, LENGTH, WIDTH, LAYERS, BATCH = 64, 8, 32, 4, 8
COMMON = dict(
    bias_gelu_fusion=True,
    bias_dropout_fusion=True,
    scale_mask_softmax_fusion=True,
    initializer_range=0.02,
    apply_query_key_layer_scaling=True,
    amp_enabled=False,
)
TEXT = dict(
    vocab_size=VOCABULARY,
    hidden_size=WIDTH,
    num_attention_heads=4,
    hidden_dropout_prob=0.1,
    attention_probs_dropout_prob=0.1,
    intermediate_size=2 * WIDTH,
    max_position_embeddings=LENGTH,
    embedding_dropout_prob=0.1,
    layernorm_eps=1e-5,
    **COMMON,
)

MODELS = {
    "gpt": LazyCall(GPTForPreTraining)(cfg=dict(
        num_layers=LAYERS, vocab_size=VOCABULARY, hidden_size=WIDTH, ffn_hidden_size=2 * WIDTH, num_attention_heads=4,
        max_seq_length=LENGTH, embedding_dropout_prob=0.1, attention_dropout_prob=0.1, output_dropout_prob=0.1,
        layernorm_epsilon=1e-5, use_scaled_init_for_output_weights=True, **COMMON)),
    "bert": LazyCall(BertForPreTraining)(cfg=dict(
        TEXT, hidden_layers=LAYERS, num_tokentypes=2, add_pooling_layer=True, add_binary_head=True)),
    "t5": LazyCall(T5ForPreTraining)(cfg=dict(TEXT, hidden_layers=LAYERS // 2)),
    "vit": LazyCall(VisionTransformer)(
        img_size=16, patch_size=4, embed_dim=WIDTH, depth=LAYERS, num_heads=4, num_classes=10, drop_rate=0.1),
}  # fmt: skip


def words(*size):
    return flow.randint(0, VOCABULARY, size)


def sample(model):
    """One made-up example of a model's; the labels live where its last layer does."""
    ones, last = flow.ones(LENGTH, dtype=flow.long), dict(placement_idx=-1)
    square = flow.ones(LENGTH, LENGTH, dtype=flow.long)
    masked = dict(lm_labels=DistTensorData(words(LENGTH), **last), loss_mask=DistTensorData(ones, **last))
    if model == "gpt":
        return Instance(input_ids=DistTensorData(words(LENGTH)), labels=DistTensorData(words(LENGTH), **last))
    if model == "bert":
        pair = DistTensorData(flow.randint(0, 2, ()), **last)
        return Instance(
            input_ids=DistTensorData(words(LENGTH)),
            attention_mask=DistTensorData(ones),
            tokentype_ids=DistTensorData(flow.zeros(LENGTH, dtype=flow.long)),
            ns_labels=pair,
            **masked,
        )
    if model == "t5":
        return Instance(
            encoder_input_ids=DistTensorData(words(LENGTH)),
            decoder_input_ids=DistTensorData(words(LENGTH)),
            encoder_attn_mask=DistTensorData(square),
            decoder_attn_mask=DistTensorData(flow.tril(square)),
            encoder_decoder_attn_mask=DistTensorData(square),
            **masked,
        )
    return Instance(
        images=DistTensorData(flow.randn(3, 16, 16)), labels=DistTensorData(flow.randint(0, 10, ()), **last)
    )


class Samples(flow.utils.data.Dataset):
    def __init__(self, model, count):
        flow.manual_seed(3)
        self.all = [sample(model) for _ in range(count)]

    def __len__(self):
        return len(self.all)

    def __getitem__(self, index):
        return self.all[index]


class InOrder:
    """Batches of a rank such that all ranks' together are the same in every layout."""

    def __init__(self, count, start):
        self.count, self.start = count, start

    def __iter__(self):
        ranks, tensor = dist.get_data_parallel_size(), dist.get_tensor_parallel_size()
        place = flow.env.get_rank() % (ranks * tensor) // tensor  # among the ranks of its stage
        own, at = BATCH // ranks, self.start * BATCH + BATCH // ranks * place
        while True:
            yield [i % self.count for i in range(at, at + own)]
            at += BATCH


def loader(model, steps, start, **given):
    samples = Samples(model, steps * BATCH)
    return build_nlp_train_loader([samples], 0, sampler=InOrder(len(samples), start), num_workers=0)


class Trainer(DefaultTrainer):
    def __init__(self, cfg):
        super().__init__(cfg)
        self._trainer.write_metrics = self.write_losses  # libai's own moves each loss to a GPU

    def run_step(self):
        flow.manual_seed(self.iter)  # so that dropout is the same after a resume
        super().run_step()

    def write_losses(self, losses, data_time):
        total = sum(loss.mean().numpy() for loss in losses.values())
        if dist.is_main_process():
            with open(os.path.join(self.cfg.train.output_dir, "losses.txt"), "a") as file:
                print(self._trainer.iter, float(total), file=file)

    @classmethod
    def build_train_loader(cls, cfg, tokenizer=None):
        start = cfg.dataloader.consumed_samples // BATCH
        return loader(cfg.zoo.model, cfg.train.train_iter, start)


def config(given):
    sizes = dict(part.split("=") for part in given.sizes)
    tensor, pipeline, zero, acc = (
        int(sizes.get(n, d)) for n, d in (("tensor", 1), ("pipeline", 1), ("zero", 0), ("accumulate", 1))
    )
    graph = {kind: LazyCall(GraphBase)(is_train=kind == "train_graph") for kind in ("train_graph", "eval_graph")}
    optim = LazyCall(flow.optim.AdamW)(
        params=LazyCall(get_default_optimizer_params)(clip_grad_max_norm=1.0, clip_grad_norm_type=2.0,
                                                      weight_decay_norm=0.0, weight_decay_bias=0.0),
        lr=1e-3, weight_decay=0.01, betas=(0.9, 0.999), eps=1e-8, do_bias_correction=True)  # fmt: skip
    ranks = flow.env.get_world_size() // (tensor * pipeline)
    model = MODELS[given.model]
    if "dropout" in sizes:
        for settings in (model, model.get("cfg", {})):
            settings.update({name: 0.0 for name in settings if name.endswith(("dropout_prob", "drop_rate"))})
    return OmegaConf.create(dict(
        zoo=dict(model=given.model), model=model, optim=optim, graph=dict(graph, enabled=given.mode == "graph"),
        dataloader={}, train=dict(
            output_dir=given.folder, train_micro_batch_size=BATCH // ranks // acc, test_micro_batch_size=1,
            num_accumulation_steps=acc, train_iter=given.steps, train_epoch=0, warmup_ratio=0.0, resume=False,
            load_weight="",
            log_period=1, seed=1, amp=dict(enabled=False), activation_checkpoint=dict(enabled="checkpointing" in sizes),
            zero_optimization=dict(enabled=zero > 0, stage=zero), checkpointer=dict(period=2),
            evaluation=dict(enabled=False), rdma_enabled=False,
            scheduler=LazyCall(WarmupCosineLR)(warmup_factor=0.001, alpha=0.01, warmup_method="linear"),
            dist=dict(data_parallel_size=ranks, tensor_parallel_size=tensor, pipeline_parallel_size=pipeline,
                      pipeline_num_layers=LAYERS))), flags={"allow_objects": True})  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("mode", choices=("eager", "graph"))
    parser.add_argument("folder")
    parser.add_argument("sizes", nargs="*", help="tensor=2 pipeline=2 zero=1 accumulate=2")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--again", type=int, default=None, metavar="STEP")
    given = parser.parse_args()
    train(given, resume=False)
    if given.again is not None:
        flow.comm.barrier()
        if dist.is_main_process():
            with open(os.path.join(given.folder, "last_checkpoint"), "w") as file:
                file.write(f"model_{given.again:07d}")
        flow.comm.barrier()
        train(given, resume=True)


def train(given, resume):
    cfg = config(given)
    cfg.train.resume = resume
    dist.setup_dist_util(cfg.train.dist)  # libai's default_setup would compile an index builder, whose Makefile the
    _check_batch_size(cfg)  # package lacks
    os.makedirs(given.folder, exist_ok=True)
    flow.manual_seed(cfg.train.seed)
    Trainer(cfg).train()


if __name__ == "__main__":
    main()
