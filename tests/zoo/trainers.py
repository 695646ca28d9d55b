"""Training programs of others, unmodified, beside torch: the Trainer of transformers, alone and on two ranks.

    python -m tests.zoo.trainers

Each trains four steps, evaluates, saves and resumes; printed is the largest difference of all losses, norms and rates.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import weft as flow
from tests.zoo.models import hf

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulation": {"gradient_accumulation_steps": 2, "max_grad_norm": 0.5},
    "recomputing": {"gradient_checkpointing": True},
    "schedule": {"lr_scheduler_type": "cosine", "warmup_steps": 2, "weight_decay": 0.1},
    "Adafactor": {"optim": "adafactor"},
    "SGD": {"optim": "sgd"},
    "Adagrad": {"optim": "adagrad"},
    "smoothed labels": {"label_smoothing_factor": 0.1},
    "noise": {"neftune_noise_alpha": 5},
    "workers": {"dataloader_num_workers": 1},
    "best model": {"eval_strategy": "steps", "eval_steps": 2, "load_best_model_at_end": True},
}
TOLERANCE = 1e-3  # Adafactor divides by norms of what is near zero, and rounding grows there


def trained(ours: bool, options: dict[str, Any], folder: str) -> list[float]:
    """What a Trainer logs, of a new run and, on one rank, of another that resumes from its middle."""
    rows = [{"input_ids": x, "labels": x} for x in torch.arange(24 * 16).view(24, 16) * 7 % 64]
    seen: list[float] = []
    for resume in (False, True) if "RANK" not in os.environ else (False,):
        torch.manual_seed(0)
        config = hf.GPT2Config(
            n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=32, bos_token_id=1, eos_token_id=1
        )
        model = hf.GPT2LMHeadModel(config)
        arguments = hf.TrainingArguments(
            folder, per_device_train_batch_size=4, max_steps=4, logging_steps=1, report_to=[], use_cpu=True,
            learning_rate=1e-2, disable_tqdm=True, save_strategy="steps", save_steps=2, **options,
        )  # fmt: skip
        model = flow.from_torch(model) if ours else model
        trainer = hf.Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows[:8])
        trainer.train(resume_from_checkpoint=f"{folder}/checkpoint-2" if resume else None)
        logs = [*trainer.state.log_history, trainer.evaluate()]
        seen += [row[k] for row in logs for k in ("loss", "grad_norm", "learning_rate", "eval_loss") if k in row]
        trainer.save_model(f"{folder}/model")
        if arguments.process_index == 0:
            again = hf.GPT2LMHeadModel.from_pretrained(f"{folder}/model").state_dict()
            held = {k: flow.to_torch(v) if ours else v for k, v in model.state_dict().items()}
            assert held.keys() == again.keys() and all(torch.equal(v, again[k]) for k, v in held.items())
    return seen


def on_two_ranks(launcher: str, ours: str, folder: str) -> list[float]:
    command = [sys.executable, "-m", launcher, "--nproc_per_node", "2", __file__, ours, folder]
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path])}
    subprocess.run(command, env=env, check=True, timeout=100, stdout=subprocess.DEVNULL)
    return [float(line) for line in (Path(folder) / "seen").read_text().split()]


def difference(got: list[float], expected: list[float]) -> float:
    assert len(got) == len(expected) > 8, (got, expected)
    return max(abs(a - b) for a, b in zip(got, expected, strict=True))


def main() -> int:
    worst = 0.0
    for name, options in OPTIONS.items():
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            found = difference(trained(True, options, a), trained(False, options, b))
        print(f"{name}: {found:.0e}", flush=True)
        worst = max(worst, found)
    with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
        found = difference(on_two_ranks("weft.launch", "ours", a), on_two_ranks("torch.distributed.run", "theirs", b))
    print(f"two ranks: {found:.0e}", flush=True)
    return max(worst, found) > TOLERANCE


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(main())
    losses = trained(sys.argv[1] == "ours", {}, sys.argv[2])
    if os.environ["RANK"] == "0":
        (Path(sys.argv[2]) / "seen").write_text(" ".join(map(str, losses)))
