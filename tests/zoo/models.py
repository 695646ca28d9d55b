"""The models of docs/models.md: tiny configurations with random weights, and an input for each."""

# pyright: reportMissingImports=false
# ruff: noqa: E402

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch

warnings.filterwarnings("ignore")
LIBRARY: Final = torch.library.Library("torchvision", "FRAGMENT")
try:
    import torchvision
except RuntimeError:  # its wheels bring their ops for CUDA alone; beside a torch for CPUs their names must be declared
    for op in ("nms", "qnms"):
        LIBRARY.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    import torchvision

import diffusers
import timm
import transformers as hf

hf.logging.set_verbosity_error()

Made = tuple[torch.nn.Module, Any]  # a model and its arguments: a tuple, or a dict of keywords

SMALL: Final = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=100,
    max_position_embeddings=64,
)  # fmt: skip
DECODER: Final = dict(SMALL, num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)
SEQUENCES: Final = dict(
    d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=100,
)  # fmt: skip
SEEING: Final = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8
)


def words() -> torch.Tensor:
    return torch.randint(3, 100, (2, 12))


def language(name: str, config: str, **settings: Any) -> Made:
    x = words()
    return getattr(hf, name)(getattr(hf, config)(**settings)), {"input_ids": x, "labels": x}


def seen(name: str, config: str, **settings: Any) -> Made:
    model = getattr(hf, name)(getattr(hf, config)(**settings, num_labels=5))
    return model, {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([1, 3])}


def clip() -> Made:
    text = dict(SMALL, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    model = hf.CLIPModel(hf.CLIPConfig(text_config=text, vision_config=SEEING, projection_dim=16))
    return model, {"input_ids": words(), "pixel_values": torch.randn(2, 3, 32, 32), "return_loss": True}


def whisper() -> Made:
    config = hf.WhisperConfig(
        **SEQUENCES, num_mel_bins=8, max_source_positions=16, max_target_positions=64, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    return hf.WhisperForConditionalGeneration(config), {"input_features": torch.randn(2, 8, 32), "labels": words()}


def heard() -> Made:
    config = hf.Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=20,
        conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2, mask_time_prob=0.0, layerdrop=0.0,
    )  # fmt: skip
    return hf.Wav2Vec2ForCTC(config), {"input_values": torch.randn(2, 400), "labels": torch.randint(1, 20, (2, 4))}


def detected() -> Made:
    config = hf.DetrConfig(
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, num_queries=5, use_timm_backbone=False, use_pretrained_backbone=False,
        backbone=None, backbone_config=hf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1],
                                                       out_features=["stage2"]),
    )  # fmt: skip
    return hf.DetrForObjectDetection(config), {"pixel_values": torch.randn(2, 3, 32, 32)}


def autoencoder() -> Made:
    model = diffusers.AutoencoderKL(
        block_out_channels=(32, 32), norm_num_groups=8, down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    return model, (torch.randn(2, 3, 16, 16),)


def transformer() -> Made:
    model = diffusers.DiTTransformer2DModel(
        num_attention_heads=2, attention_head_dim=8, in_channels=4, num_layers=2, sample_size=8, patch_size=2,
        norm_num_groups=4, num_embeds_ada_norm=10,
    )  # fmt: skip
    return model, {"hidden_states": torch.randn(2, 4, 8, 8), "timestep": torch.tensor([1, 5]),
                   "class_labels": torch.tensor([1, 3])}  # fmt: skip


def image(make: Callable[..., torch.nn.Module], name: str, size: int = 64, **settings: Any) -> Made:
    # at 32 the last maps have one place: norms over the two values of a batch make the difference of one rounding large
    return make(name, num_classes=5, **settings), (torch.randn(2, 3, size, size),)


def unet() -> Made:
    model = diffusers.UNet2DConditionModel(
        sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(32, 64),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=32, attention_head_dim=8,
    )  # fmt: skip
    return model, (torch.randn(2, 4, 8, 8), torch.tensor([1, 5]), torch.randn(2, 7, 32))


def causal(kind: str, **settings: Any) -> Callable[[], Made]:
    return partial(language, f"{kind}ForCausalLM", f"{kind}Config", **DECODER, **settings)


def masked(kind: str, **settings: Any) -> Callable[[], Made]:
    return partial(language, f"{kind}ForMaskedLM", f"{kind}Config", **{**SMALL, **settings})


TRANSFORMERS: Final[dict[str, Callable[[], Made]]] = {
    "GPT-2": partial(language, "GPT2LMHeadModel", "GPT2Config", n_layer=2, n_embd=32, n_head=4, vocab_size=100,
                     n_positions=64, bos_token_id=1, eos_token_id=2),
    "Llama": causal("Llama"),
    "Qwen2": causal("Qwen2"),
    "Qwen3": causal("Qwen3", head_dim=8),
    "Mistral": causal("Mistral"),
    "Mixtral": causal("Mixtral", num_local_experts=4, num_experts_per_tok=2),
    "Gemma 2": causal("Gemma2", head_dim=8),
    "Phi": causal("Phi"),
    "GPT-NeoX": partial(language, "GPTNeoXForCausalLM", "GPTNeoXConfig", **SMALL),
    "Falcon": partial(language, "FalconForCausalLM", "FalconConfig", hidden_size=32, num_hidden_layers=2,
                      num_attention_heads=4, vocab_size=100),
    "Bloom": partial(language, "BloomForCausalLM", "BloomConfig", hidden_size=32, n_layer=2, n_head=4, vocab_size=100),
    "Mamba": partial(language, "MambaForCausalLM", "MambaConfig", hidden_size=32, num_hidden_layers=2, vocab_size=100,
                     state_size=8),
    "BERT": masked("Bert"),
    "RoBERTa": masked("Roberta"),
    "DeBERTa v2": masked("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"]),
    "T5": partial(language, "T5ForConditionalGeneration", "T5Config", d_model=32, d_kv=8, d_ff=64, num_layers=2,
                  num_heads=4, vocab_size=100, decoder_start_token_id=0),
    "BART": partial(language, "BartForConditionalGeneration", "BartConfig", **SEQUENCES, max_position_embeddings=64,
                    pad_token_id=1),
    "Whisper": whisper,
    "ViT": partial(seen, "ViTForImageClassification", "ViTConfig", **SEEING),
    "Swin": partial(seen, "SwinForImageClassification", "SwinConfig", image_size=32, patch_size=2, embed_dim=16,
                    depths=[2, 2], num_heads=[2, 4], window_size=4),
    "CLIP": clip,
    "Gemma": causal("Gemma", head_dim=8),
    "OPT": partial(language, "OPTForCausalLM", "OPTConfig", hidden_size=32, num_hidden_layers=2, ffn_dim=64,
                   num_attention_heads=4, vocab_size=100, max_position_embeddings=64, word_embed_proj_dim=32),
    "DistilBERT": partial(language, "DistilBertForMaskedLM", "DistilBertConfig", dim=32, n_layers=2, n_heads=4,
                          hidden_dim=64, vocab_size=100, max_position_embeddings=64),
    "ELECTRA": masked("Electra", embedding_size=32),
    "ALBERT": masked("Albert", embedding_size=16),
    "XLNet": partial(language, "XLNetLMHeadModel", "XLNetConfig", vocab_size=100, d_model=32, n_layer=2, n_head=4,
                     d_inner=64),
    "Funnel": partial(language, "FunnelForMaskedLM", "FunnelConfig", vocab_size=100, block_sizes=[1, 1], d_model=32,
                      n_head=4, d_head=8, d_inner=64),
    "wav2vec2": heard,
    "ConvNeXt": partial(seen, "ConvNextForImageClassification", "ConvNextConfig", hidden_sizes=[8, 16],
                        depths=[1, 1], num_stages=2),
    "DeiT": partial(seen, "DeiTForImageClassification", "DeiTConfig", **SEEING),
    "SegFormer": partial(seen, "SegformerForImageClassification", "SegformerConfig", hidden_sizes=[8, 16, 16, 16],
                         depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 2]),
    "DETR": detected,
}  # fmt: skip
TIMM: Final = {
    name: partial(image, timm.create_model, name, **settings)
    for name, settings in {
        "resnet10t": {}, "mobilenetv3_small_050": {}, "convnext_atto": {},
        "vit_tiny_patch16_224": {"img_size": 32, "size": 32}, "regnetx_002": {}, "ghostnet_050": {}, "repvgg_a0": {},
        "mobilevit_xxs": {}, "edgenext_xx_small": {}, "poolformer_s12": {}, "xcit_nano_12_p16_224": {},
        "efficientnet_b0": {}, "swin_tiny_patch4_window7_224": {"img_size": 64, "window_size": 4},
        "deit_tiny_patch16_224": {"img_size": 32, "size": 32}, "maxvit_rmlp_pico_rw_256": {"img_size": 64},
    }.items()
}  # fmt: skip
VISION: Final = partial(torchvision.models.get_model, weights=None)
TORCHVISION: Final = {
    name: partial(image, VISION, name, **settings)
    for name, settings in {
        "resnet18": {}, "densenet121": {}, "mobilenet_v2": {},
        "mobilenet_v3_small": {}, "squeezenet1_1": {}, "shufflenet_v2_x0_5": {}, "mnasnet0_5": {}, "regnet_y_400mf": {},
        "swin_t": {},
        "inception_v3": {"size": 75, "init_weights": False, "aux_logits": False},
    }.items()
}  # fmt: skip


def narrowed(name: str) -> Made:
    """With 64 units for 4096 in its classifier, which has nearly all of its 60 to 130 million parameters."""
    model, given = image(VISION, name)
    wide = [i for i, layer in enumerate(model.classifier) if isinstance(layer, torch.nn.Linear)]
    for i, width in zip(wide, (64, 64, 5), strict=True):
        features = model.classifier[i].in_features if i == wide[0] else 64
        model.classifier[i] = torch.nn.Linear(features, width)
    return model, given


def shallow() -> Made:
    """With two of its twelve layers, which have nearly all of its 86 million parameters."""
    model, given = image(VISION, "vit_b_16", image_size=64)
    model.encoder.layers = model.encoder.layers[:2]
    return model, given


def segmented() -> Made:
    model = torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None, num_classes=3)
    return model, (torch.randn(2, 3, 32, 32),)


TORCHVISION |= {f"{n}, narrow classifier": partial(narrowed, n) for n in ("alexnet", "vgg11", "vgg11_bn")}
TORCHVISION |= {"vit_b_16, two layers": shallow, "fcn_resnet50": segmented}


class Denoising(torch.nn.Module):
    """A step of diffusion: noise of a scheduler's, and a network that finds it."""

    def __init__(self) -> None:
        super().__init__()
        self.network = diffusers.UNet2DModel(
            sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64),
            down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        )  # fmt: skip
        self.scheduler = diffusers.DDPMScheduler()

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        noise = torch.randn(x.shape, dtype=x.dtype, device=x.device)
        return self.network(self.scheduler.add_noise(x, noise, steps), steps).sample - noise


def denoised() -> Made:
    return Denoising(), (torch.randn(2, 3, 8, 8), torch.tensor([3, 500]))


class Detecting(torch.nn.Module):
    """A detector of objects with the targets that it is trained by; the sum of its losses."""

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__()
        self.detector = VISION(name, weights_backbone=None, num_classes=3, **settings)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        boxes = torch.tensor([[4.0, 4.0, 30.0, 40.0], [20.0, 10.0, 60.0, 50.0]], dtype=x.dtype, device=x.device)
        targets = [{"boxes": boxes, "labels": torch.tensor([1, 2], device=x.device)} for _ in x]
        return sum(self.detector(list(x), targets).values()).sqrt()  # a loss is the mean of a square


def detecting(name: str, **settings: Any) -> Made:
    return Detecting(name, **settings), (torch.rand(2, 3, 64, 64),)


TORCHVISION["ssdlite320_mobilenet_v3_large"] = partial(detecting, "ssdlite320_mobilenet_v3_large")
TORCHVISION["retinanet_resnet50_fpn"] = partial(detecting, "retinanet_resnet50_fpn", min_size=64, max_size=64)
MODELS: Final = {
    "transformers": TRANSFORMERS, "timm": TIMM, "torchvision": TORCHVISION,
    "diffusers": {"UNet2DConditionModel": unet, "AutoencoderKL": autoencoder, "DiTTransformer2DModel": transformer,
                  "UNet2DModel with DDPMScheduler": denoised},
}  # fmt: skip


def loss_of(output: Any) -> Any:
    """What is trained: the loss that a model tells, or the mean square of what it gives."""
    if getattr(output, "loss", None) is not None:
        return output.loss
    if isinstance(output, dict) and "out" in output:
        return output["out"].square().mean()
    found = next((y for n in ("sample", "logits") if (y := getattr(output, n, None)) is not None), output)
    return found.square().mean()
