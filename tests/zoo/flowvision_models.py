"""flowvision's classification models: each is built and trains a step, and gives torchvision's outputs where it has the
same weights.

    python -m weft.oneflow tests/zoo/flowvision_models.py            # all; or names, or: but names

A model that needs more memory or time than the limits below is told so.
"""

import contextlib
import gc
import resource
import signal
import sys
import traceback

import oneflow as flow
import torch
from flowvision.models import ModelCreator

# torchvision's own ops may be built for another torch; no classification model has any, but importing it asks for two
_ops = torch.library.Library("torchvision", "FRAGMENT")
for _op in ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
            "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"):  # fmt: skip
    _ops.define(_op)
import torchvision  # noqa: E402

# not of classification, or of faces: these take other inputs
OTHERS = {"detection", "segmentation", "style_transfer", "face_recognition"}
ITS_OWN = {"regnet": "its stem doesn't pad"}  # networks that differ from torchvision's of the same names and weights
MEMORY, TIME = 9, 240  # GB and seconds for a model
LIMITS = TimeoutError, MemoryError, flow.OutOfMemoryError


def names():
    found = ModelCreator._model_entrypoints
    return sorted(n for n, make in found.items() if not OTHERS.intersection(make.__module__.split(".")))


def sizes_of(name):
    """The sides of images to try: small ones, for models that take any, and those that the model may be made for; a
    number in its name may be another width."""
    made_for = [s for s in (448, 384) if str(s) in name]
    return 32, 64, *made_for, *((299,) if name.startswith("inception") else ()), 224, 384


def answer(y):
    """The first output: some give those of helper heads, too."""
    while isinstance(y, (tuple, list)):
        y = y[0]
    return y


def of(name):
    """What became of a model: the smallest image it took, and whether torchvision answers the same."""
    model = ModelCreator.create_model(name)
    *smaller, last = sizes_of(name)
    for size in smaller:
        try:
            return trained(name, model, size)
        except LIMITS:
            raise
        except Exception:  # it takes larger ones
            continue
    return trained(name, model, last)


def over_time(signum, frame):
    raise TimeoutError


def trained(name, model, size):
    words = beside_torchvision(name, model, size)
    model.train()
    optimizer = flow.optim.SGD(model.parameters(), lr=1e-3)
    loss = flow.nn.functional.cross_entropy(answer(model(flow.randn(2, 3, size, size))), flow.tensor([1, 2]))
    loss.backward()
    optimizer.step()
    assert flow.isfinite(loss).item() and any(p.grad is not None for p in model.parameters())
    return f"trained at {size}{words}"


def beside_torchvision(name, model, size):
    make = getattr(torchvision.models, name, None)
    if make is None:
        return ""
    if why := next((why for kind, why in ITS_OWN.items() if name.startswith(kind)), None):
        return f", another network than torchvision's: {why}"
    options = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    theirs = make(weights=None, **options)
    state = theirs.state_dict()
    ours = model.state_dict()
    if {k: tuple(v.shape) for k, v in state.items()} != {k: tuple(v.shape) for k, v in ours.items()}:
        return ", other weights than torchvision's"
    model.load_state_dict({k: flow.utils.tensor.from_torch(v) for k, v in state.items()})
    model.eval(), theirs.eval()
    x = torch.randn(2, 3, size, size)
    with torch.no_grad(), flow.no_grad():
        wanted, got = theirs(x), answer(model(flow.utils.tensor.from_torch(x)))
    scale = wanted.abs().max().clamp(min=1)
    assert ((torch.from_numpy(got.numpy()) - wanted).abs().max() / scale).item() < 1e-4, (
        "other outputs than torchvision"
    )
    return ", as torchvision"


def main(chosen):
    failed = 0
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY << 30, MEMORY << 30))
    signal.signal(signal.SIGALRM, over_time)
    if chosen[:1] == ["but"]:
        chosen = [n for n in names() if n not in chosen]
    for name in chosen or names():
        gc.collect()
        signal.alarm(TIME)
        try:
            with contextlib.redirect_stdout(sys.stderr):  # some models print
                words = of(name)
        except LIMITS as error:
            words = f"over {f'{TIME} s' if isinstance(error, TimeoutError) else f'{MEMORY} GB'}"
        except Exception as error:
            failed += 1
            words = f"failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            traceback.print_exc()
        signal.alarm(0)
        print(f"{name}: {words}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
