"""Modules, parameters and layers, written with public functions alone."""

import sys
from typing import Final

from weft.core.derived import GIVEN, lazily
from weft.nn import attention, functional, init, layers, utils
from weft.nn.module.hooks import of_every_module
from weft.nn.module.module import Module
from weft.nn.oneflow import cells, quantization
from weft.tensor.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

LAYERS: Final = {  # by file, each of which is read when a program first asks for one of its names
    "data_parallel": "DataParallel",
    "layers.activation": """
        CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish
        MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink
        Softsign Tanh Tanhshrink Threshold
    """,
    "layers.adaptive": "AdaptiveLogSoftmaxWithLoss",
    "layers.batch_statistics": "AllReduce",
    "layers.batchnorm": """
        BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d
        SyncBatchNorm
    """,
    "layers.channelshuffle": "ChannelShuffle",
    "layers.container": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "layers.conv": """
        Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d
        LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d
    """,
    "layers.distance": "CosineSimilarity PairwiseDistance",
    "layers.dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "layers.flatten": "Flatten Unflatten",
    "layers.fold": "Fold Unfold",
    "layers.instancenorm": """
        InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d
    """,
    "layers.linear": "Bilinear Identity LazyLinear Linear",
    "layers.loss": """
        BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss
        GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss
        MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss
        SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss
    """,
    "layers.normalization": "GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "layers.padding": """
        CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d
        ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d
        ZeroPad3d
    """,
    "layers.pixelshuffle": "PixelShuffle PixelUnshuffle",
    "layers.pooling": """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
        AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d
        LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d
    """,
    "layers.rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "layers.sparse": "Embedding EmbeddingBag",
    "layers.transformer": """
        Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer
    """,
    "layers.upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
    "oneflow.coin_flip": "CoinFlip",
    "oneflow.fused_layers": """
        CombinedMarginLoss DistributedPariticalFCSample FusedBatchNorm1d FusedBatchNorm2d FusedBatchNorm3d FusedMLP
        QuickGELU RMSLayerNorm
    """,
    "oneflow.quantized_layers": """
        FakeQuantization MinMaxObserver MovingAverageMinMaxObserver QatConv1d QatConv2d QatConv3d Quantization
    """,
}  # fmt: skip
BASES: Final = {  # which nn.modules has too
    "layers.batchnorm": ("_BatchNorm", "_NormBase"), "layers.conv": ("_ConvNd", "_ConvTransposeNd"),
    "layers.dropout": ("_DropoutNd",), "layers.instancenorm": ("_InstanceNorm",),
    "layers.loss": ("_Loss", "_WeightedLoss"),
    "layers.padding": ("_CircularPadNd", "_ConstantPadNd", "_ReflectionPadNd", "_ReplicationPadNd"),
    "layers.pooling": ("_AdaptiveAvgPoolNd", "_AdaptiveMaxPoolNd", "_AvgPoolNd", "_LPPoolNd", "_MaxPoolNd",
                       "_MaxUnpoolNd"),
}  # fmt: skip
HOMES: Final = {file: tuple(names.split()) for file, names in LAYERS.items()}

GIVEN.update({f"torch.nn.modules.{file}": sys.modules[__name__] for file in layers.FILES})
__getattr__ = lazily(__name__, {file: names + BASES.get(file, ()) for file, names in HOMES.items()})

READ: Final = (attention, cells, quantization)  # at once, as they add to the table of functions
HERE: Final = {k.__name__: k for k in (Module, Buffer, Parameter, UninitializedBuffer, UninitializedParameter)}
EVERY: Final = sorted({*HERE, *(name for names in HOMES.values() for name in names)})
OF_MODULES: Final = {  # what nn.modules has
    "__getattr__": __getattr__, "__dir__": lambda: [*EVERY, *sum(BASES.values(), ())], "__all__": EVERY,
    "__doc__": __doc__, **HERE,
    **{f.__name__: f for f in of_every_module(Module)},
}  # fmt: skip
__all__ = [*EVERY, "cells", "functional", "init", "utils"]  # pyright: ignore[reportUnsupportedDunderAll]
