"""`make zoo`: train each model two steps in four ways, compare with torch, and write docs/models.md.

python -m tests.zoo                    all of them
python -m tests.zoo GPT-2 resnet18     some of them
python -m tests.zoo rest               those of which nothing is known

What was found is kept below build/ as it comes, and the page has all that is known.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
from pathlib import Path
from typing import Final

import torch

from tests.zoo.models import MODELS
from tests.zoo.train import COLUMNS, LOOSE, TIGHT, row

PAGE: Final = Path(__file__).parents[2] / "docs" / "models.md"
FOUND: Final = PAGE.parents[1] / "build" / "zoo-models.json"
HEAD: Final = f"""\
# Models of other libraries

What `python -m tests.zoo` wrote. Each model, unmodified, in a small configuration with random weights, was taken by
`flow.from_torch` and trained two steps of SGD in training mode, with its dropout and its buffers, in float64; torch
trained a copy beside it. Compared were both losses, all parameters and buffers after the steps, and, but for graphs,
all gradients of the first step: tensor by tensor, the norm of the difference over the norm of torch's.

- **eager**: on one rank;
- **graph**: the same steps as a `nn.Graph` with its optimizer;
- **data**: on two ranks (threads of one process), the batch split;
- **tensor**: on two ranks, the weights split by the model's own `base_model_tp_plan`, or where it has none, every
  weight along its first dimension.

On two ranks, dropout of a tensor that was transposed goes through it row by row, where torch goes in the order of
memory: such models were compared with torch's on contiguous tensors.

A yes says that no tensor differed by {TIGHT:.0e} or more. A number is the largest difference, where it was more, below
{LOOSE:.0e}: parts of these models compute in float32 whatever they are given. What is nothing but rounding (the
gradient of a bias before a normalization, say) was measured by a millionth of the largest tensor of its kind.
Everything else is told in words; an error by the first line of what the user reads. Those of the last run are branches
on values that a graph's trace can't know: wav2vec2 compares its labels with its vocabulary, DETR asks whether what it
computed is finite, detectors draw the size of their images. `torch.export` refuses all four for the same reason.

[from-pytorch.md](from-pytorch.md) says how it is done.
"""
OTHERS: Final = """\
## Others

These were tried once, eagerly and as a graph, and were as near to torch as the above.

Of transformers 5.24.0:
Gemma3, Phi3, OLMo, OLMo2, Olmo3, OLMoE, GPT-J, GPT-Neo, GPTBigCode, CodeGen, CTRL, OpenAI GPT, MPT, StableLM,
Qwen2-MoE, Qwen3-MoE, Qwen3-Next, Granite, GraniteMoe, GraniteMoeHybrid, Cohere, Cohere2, Mamba2, FalconMamba, RWKV,
RecurrentGemma, Jamba, Bamba, Zamba2, FalconH1, NemotronH, Lfm2, Nemotron, Persimmon, Starcoder2, GLM, GLM4, Glm4Moe,
GptOss, Llama4, SmolLM3, Exaone4, DiffLlama, PhiMoE, Helium, BitNet, MiniMax, Ernie4.5, ModernBERT decoder, BioGPT,
XGLM, Doge, Gemma3n, Apertus, Arcee, SeedOss, HunYuanDense, XLM-R, XLM-R XL, CamemBERT, DeBERTa, BigBird, ModernBERT,
MPNet, SqueezeBERT, RoFormer, MobileBERT, FNet, ConvBERT, ESM, RemBERT, Data2VecText, ERNIE, LayoutLM, YOSO, MRA,
Perceiver, mBART, Pegasus, BlenderBot, BlenderbotSmall, Marian, mT5, UMT5, BigBirdPegasus, PLBart, PegasusX, BeiT,
ConvNextV2, Swinv2, DINOv2, DINOv2reg, SigLIP, LeViT, MobileNetV1, MobileNetV2, MobileViTV2, PoolFormer, PVT, PVTv2,
RegNet, ResNet, BiT, FocalNet, SwiftFormer, Hiera, ViT-MSN, ViT-MAE, ImageGPT, I-JEPA, TextNet, HGNetV2, UperNet,
VideoMAE, TimeSformer, ViViT, BLIP, BLIP-2, AltCLIP, CLIPSeg, OWL-ViT, GIT, TrOCR, Pix2Struct, AST, Speech2Text,
MusicGen, Moonshine, PatchTST, PatchTST pretraining, PatchTSMixer, DeepSeek-V2, DeepSeek-V3, DINOv3, EfficientNet,
Depth Anything, Swin2SR, ViTPose, V-JEPA2, YOLOS, SAM, DAC, Longformer, LED, SegFormer decoder, DPT.

Of timm 1.0.31:
resnext26ts, seresnet18, resnetv2_50x1_bit, lambda_resnet26t, convnextv2_atto, efficientformer_l1,
efficientformerv2_s0, efficientnetv2_rw_t, tf_efficientnet_lite0, mobilenetv4_conv_small, mobileone_s0, fastvit_t8,
repghostnet_050, hardcorenas_a, fbnetc_100, mnasnet_small, lcnet_035, tinynet_e, dla46_c, dpn48b, densenet121,
hrnet_w18_small, inception_next_atto, nfnet_f0, dm_nfnet_f0, eca_nfnet_l0, regnety_002, res2net50_14w_8s, resnest14d,
skresnet18, rexnet_100, selecsls42b, vovnet39a, ese_vovnet19b_dw, xception41, cait_xxs24_224, coat_tiny,
coatnet_nano_rw_224, convit_tiny, convmixer_768_32, crossvit_tiny_240, cspresnet50, davit_tiny,
eva02_tiny_patch14_224, beit_base_patch16_224, focalnet_tiny_srf, gcvit_xxtiny, gmlp_ti16_224, mixer_s32_224,
resmlp_12_224, hiera_tiny_224, inception_v4, levit_128s, mambaout_femto, caformer_s18, mvitv2_tiny, nest_tiny,
nextvit_small, pit_ti_224, pvt_v2_b0, rdnet_tiny, repvit_m0_9, samvit_base_patch16, sequencer2d_s, shvit_s1,
starnet_s1, swiftformer_xs, swinv2_tiny_window8_256, swinv2_cr_tiny_224, tnt_s_patch16_224, tresnet_m,
twins_svt_small, visformer_tiny, vit_base_patch16_siglip_224, volo_d1_224, ghostnetv2_100, csatv2, vitamin_small_224,
naflexvit_base_patch16_gap.
"""


Rows = dict[str, dict[str, dict[str, str]]]  # by library and its version, model and column


def page(known: Rows) -> str:
    lines = [HEAD]
    for library, models in MODELS.items():
        found = known.get(titled(library), {})
        lines += ["", f"## {titled(library)}", ""]
        lines += [f"| model | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
        lines += [line(name, found.get(name, dict.fromkeys(COLUMNS, "not run"))) for name in models]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n\n" + OTHERS


def titled(library: str) -> str:
    return f"{library} {importlib.metadata.version(library)}"


def line(name: str, found: dict[str, str]) -> str:
    return "| " + " | ".join([name, *(found[c].replace("|", "/") for c in COLUMNS)]) + " |"


def main(names: list[str]) -> int:
    """Try models and write the page; fails if one failed in a way that the page didn't tell before."""
    torch.set_num_threads(1)
    known: Rows = json.loads(FOUND.read_text()) if names and FOUND.exists() else {}
    FOUND.parent.mkdir(exist_ok=True)
    before = PAGE.read_text() if PAGE.exists() else ""
    begun, good = time.monotonic(), True
    for library, models in MODELS.items():
        for name, make in models.items():
            found = known.setdefault(titled(library), {})
            if name not in names if names and names != ["rest"] else names and name in found:
                continue
            found[name], seconds = row(make)
            print(f"{time.monotonic() - begun:6.0f} s {seconds:5.1f} {line(name, found[name])}", flush=True)
            good = good and all(r == "yes" or r[0].isdigit() or r[:80] in before for r in found[name].values())
            FOUND.write_text(json.dumps(known, indent=1))
            PAGE.write_text(page(known))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
