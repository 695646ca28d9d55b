# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""Modules, parameters and layers, written with public functions alone."""


__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveLogSoftmaxWithLoss", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AllReduce", "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear", "Buffer", "CELU",
    "CTCLoss", "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "CoinFlip", "CombinedMarginLoss",
    "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
    "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss", "CosineSimilarity", "CrossEntropyLoss", "DataParallel",
    "DistributedPariticalFCSample", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "ELU", "Embedding",
    "EmbeddingBag", "FakeQuantization", "FeatureAlphaDropout", "Flatten", "Fold", "FractionalMaxPool2d",
    "FractionalMaxPool3d", "FusedBatchNorm1d", "FusedBatchNorm2d", "FusedBatchNorm3d", "FusedMLP", "GELU", "GLU", "GRU",
    "GRUCell", "GaussianNLLLoss", "GroupNorm", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "HingeEmbeddingLoss", "HuberLoss", "Identity", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "KLDivLoss",
    "L1Loss", "LPPool1d", "LPPool2d", "LPPool3d", "LSTM", "LSTMCell", "LayerNorm", "LazyBatchNorm1d", "LazyBatchNorm2d",
    "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear", "LeakyReLU",
    "Linear", "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "MSELoss", "MarginRankingLoss", "MaxPool1d", "MaxPool2d",
    "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "MinMaxObserver", "Mish", "Module", "ModuleDict",
    "ModuleList", "MovingAverageMinMaxObserver", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "MultiheadAttention", "NLLLoss", "PReLU", "PairwiseDistance", "Parameter", "ParameterDict", "ParameterList",
    "PixelShuffle", "PixelUnshuffle", "PoissonNLLLoss", "QatConv1d", "QatConv2d", "QatConv3d", "Quantization",
    "QuickGELU", "RMSLayerNorm", "RMSNorm", "RNN", "RNNBase", "RNNCell", "RNNCellBase", "RReLU", "ReLU", "ReLU6",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "SELU", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss", "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin",
    "Softplus", "Softshrink", "Softsign", "SyncBatchNorm", "Tanh", "Tanhshrink", "Threshold", "Transformer",
    "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unflatten", "Unfold", "UninitializedBuffer",
    "UninitializedParameter", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d",
    "ZeroPad3d"
]

from weft.nn.data_parallel import DataParallel as DataParallel
from weft.nn.layers.activation import CELU as CELU
from weft.nn.layers.activation import ELU as ELU
from weft.nn.layers.activation import GELU as GELU
from weft.nn.layers.activation import GLU as GLU
from weft.nn.layers.activation import Hardshrink as Hardshrink
from weft.nn.layers.activation import Hardsigmoid as Hardsigmoid
from weft.nn.layers.activation import Hardswish as Hardswish
from weft.nn.layers.activation import Hardtanh as Hardtanh
from weft.nn.layers.activation import LeakyReLU as LeakyReLU
from weft.nn.layers.activation import LogSigmoid as LogSigmoid
from weft.nn.layers.activation import LogSoftmax as LogSoftmax
from weft.nn.layers.activation import Mish as Mish
from weft.nn.layers.activation import MultiheadAttention as MultiheadAttention
from weft.nn.layers.activation import PReLU as PReLU
from weft.nn.layers.activation import RReLU as RReLU
from weft.nn.layers.activation import ReLU as ReLU
from weft.nn.layers.activation import ReLU6 as ReLU6
from weft.nn.layers.activation import SELU as SELU
from weft.nn.layers.activation import SiLU as SiLU
from weft.nn.layers.activation import Sigmoid as Sigmoid
from weft.nn.layers.activation import Softmax as Softmax
from weft.nn.layers.activation import Softmax2d as Softmax2d
from weft.nn.layers.activation import Softmin as Softmin
from weft.nn.layers.activation import Softplus as Softplus
from weft.nn.layers.activation import Softshrink as Softshrink
from weft.nn.layers.activation import Softsign as Softsign
from weft.nn.layers.activation import Tanh as Tanh
from weft.nn.layers.activation import Tanhshrink as Tanhshrink
from weft.nn.layers.activation import Threshold as Threshold
from weft.nn.layers.adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from weft.nn.layers.batch_statistics import AllReduce as AllReduce
from weft.nn.layers.batchnorm import BatchNorm1d as BatchNorm1d
from weft.nn.layers.batchnorm import BatchNorm2d as BatchNorm2d
from weft.nn.layers.batchnorm import BatchNorm3d as BatchNorm3d
from weft.nn.layers.batchnorm import LazyBatchNorm1d as LazyBatchNorm1d
from weft.nn.layers.batchnorm import LazyBatchNorm2d as LazyBatchNorm2d
from weft.nn.layers.batchnorm import LazyBatchNorm3d as LazyBatchNorm3d
from weft.nn.layers.batchnorm import SyncBatchNorm as SyncBatchNorm
from weft.nn.layers.channelshuffle import ChannelShuffle as ChannelShuffle
from weft.nn.layers.container import ModuleDict as ModuleDict
from weft.nn.layers.container import ModuleList as ModuleList
from weft.nn.layers.container import ParameterDict as ParameterDict
from weft.nn.layers.container import ParameterList as ParameterList
from weft.nn.layers.container import Sequential as Sequential
from weft.nn.layers.conv import Conv1d as Conv1d
from weft.nn.layers.conv import Conv2d as Conv2d
from weft.nn.layers.conv import Conv3d as Conv3d
from weft.nn.layers.conv import ConvTranspose1d as ConvTranspose1d
from weft.nn.layers.conv import ConvTranspose2d as ConvTranspose2d
from weft.nn.layers.conv import ConvTranspose3d as ConvTranspose3d
from weft.nn.layers.conv import LazyConv1d as LazyConv1d
from weft.nn.layers.conv import LazyConv2d as LazyConv2d
from weft.nn.layers.conv import LazyConv3d as LazyConv3d
from weft.nn.layers.conv import LazyConvTranspose1d as LazyConvTranspose1d
from weft.nn.layers.conv import LazyConvTranspose2d as LazyConvTranspose2d
from weft.nn.layers.conv import LazyConvTranspose3d as LazyConvTranspose3d
from weft.nn.layers.distance import CosineSimilarity as CosineSimilarity
from weft.nn.layers.distance import PairwiseDistance as PairwiseDistance
from weft.nn.layers.dropout import AlphaDropout as AlphaDropout
from weft.nn.layers.dropout import Dropout as Dropout
from weft.nn.layers.dropout import Dropout1d as Dropout1d
from weft.nn.layers.dropout import Dropout2d as Dropout2d
from weft.nn.layers.dropout import Dropout3d as Dropout3d
from weft.nn.layers.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from weft.nn.layers.flatten import Flatten as Flatten
from weft.nn.layers.flatten import Unflatten as Unflatten
from weft.nn.layers.fold import Fold as Fold
from weft.nn.layers.fold import Unfold as Unfold
from weft.nn.layers.instancenorm import InstanceNorm1d as InstanceNorm1d
from weft.nn.layers.instancenorm import InstanceNorm2d as InstanceNorm2d
from weft.nn.layers.instancenorm import InstanceNorm3d as InstanceNorm3d
from weft.nn.layers.instancenorm import LazyInstanceNorm1d as LazyInstanceNorm1d
from weft.nn.layers.instancenorm import LazyInstanceNorm2d as LazyInstanceNorm2d
from weft.nn.layers.instancenorm import LazyInstanceNorm3d as LazyInstanceNorm3d
from weft.nn.layers.linear import Bilinear as Bilinear
from weft.nn.layers.linear import Identity as Identity
from weft.nn.layers.linear import LazyLinear as LazyLinear
from weft.nn.layers.linear import Linear as Linear
from weft.nn.layers.loss import BCELoss as BCELoss
from weft.nn.layers.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from weft.nn.layers.loss import CTCLoss as CTCLoss
from weft.nn.layers.loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from weft.nn.layers.loss import CrossEntropyLoss as CrossEntropyLoss
from weft.nn.layers.loss import GaussianNLLLoss as GaussianNLLLoss
from weft.nn.layers.loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from weft.nn.layers.loss import HuberLoss as HuberLoss
from weft.nn.layers.loss import KLDivLoss as KLDivLoss
from weft.nn.layers.loss import L1Loss as L1Loss
from weft.nn.layers.loss import MSELoss as MSELoss
from weft.nn.layers.loss import MarginRankingLoss as MarginRankingLoss
from weft.nn.layers.loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from weft.nn.layers.loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from weft.nn.layers.loss import MultiMarginLoss as MultiMarginLoss
from weft.nn.layers.loss import NLLLoss as NLLLoss
from weft.nn.layers.loss import PoissonNLLLoss as PoissonNLLLoss
from weft.nn.layers.loss import SmoothL1Loss as SmoothL1Loss
from weft.nn.layers.loss import SoftMarginLoss as SoftMarginLoss
from weft.nn.layers.loss import TripletMarginLoss as TripletMarginLoss
from weft.nn.layers.loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from weft.nn.layers.normalization import GroupNorm as GroupNorm
from weft.nn.layers.normalization import LayerNorm as LayerNorm
from weft.nn.layers.normalization import LocalResponseNorm as LocalResponseNorm
from weft.nn.layers.normalization import RMSNorm as RMSNorm
from weft.nn.layers.padding import CircularPad1d as CircularPad1d
from weft.nn.layers.padding import CircularPad2d as CircularPad2d
from weft.nn.layers.padding import CircularPad3d as CircularPad3d
from weft.nn.layers.padding import ConstantPad1d as ConstantPad1d
from weft.nn.layers.padding import ConstantPad2d as ConstantPad2d
from weft.nn.layers.padding import ConstantPad3d as ConstantPad3d
from weft.nn.layers.padding import ReflectionPad1d as ReflectionPad1d
from weft.nn.layers.padding import ReflectionPad2d as ReflectionPad2d
from weft.nn.layers.padding import ReflectionPad3d as ReflectionPad3d
from weft.nn.layers.padding import ReplicationPad1d as ReplicationPad1d
from weft.nn.layers.padding import ReplicationPad2d as ReplicationPad2d
from weft.nn.layers.padding import ReplicationPad3d as ReplicationPad3d
from weft.nn.layers.padding import ZeroPad1d as ZeroPad1d
from weft.nn.layers.padding import ZeroPad2d as ZeroPad2d
from weft.nn.layers.padding import ZeroPad3d as ZeroPad3d
from weft.nn.layers.pixelshuffle import PixelShuffle as PixelShuffle
from weft.nn.layers.pixelshuffle import PixelUnshuffle as PixelUnshuffle
from weft.nn.layers.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from weft.nn.layers.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from weft.nn.layers.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from weft.nn.layers.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from weft.nn.layers.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from weft.nn.layers.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from weft.nn.layers.pooling import AvgPool1d as AvgPool1d
from weft.nn.layers.pooling import AvgPool2d as AvgPool2d
from weft.nn.layers.pooling import AvgPool3d as AvgPool3d
from weft.nn.layers.pooling import FractionalMaxPool2d as FractionalMaxPool2d
from weft.nn.layers.pooling import FractionalMaxPool3d as FractionalMaxPool3d
from weft.nn.layers.pooling import LPPool1d as LPPool1d
from weft.nn.layers.pooling import LPPool2d as LPPool2d
from weft.nn.layers.pooling import LPPool3d as LPPool3d
from weft.nn.layers.pooling import MaxPool1d as MaxPool1d
from weft.nn.layers.pooling import MaxPool2d as MaxPool2d
from weft.nn.layers.pooling import MaxPool3d as MaxPool3d
from weft.nn.layers.pooling import MaxUnpool1d as MaxUnpool1d
from weft.nn.layers.pooling import MaxUnpool2d as MaxUnpool2d
from weft.nn.layers.pooling import MaxUnpool3d as MaxUnpool3d
from weft.nn.layers.rnn import GRU as GRU
from weft.nn.layers.rnn import GRUCell as GRUCell
from weft.nn.layers.rnn import LSTM as LSTM
from weft.nn.layers.rnn import LSTMCell as LSTMCell
from weft.nn.layers.rnn import RNN as RNN
from weft.nn.layers.rnn import RNNBase as RNNBase
from weft.nn.layers.rnn import RNNCell as RNNCell
from weft.nn.layers.rnn import RNNCellBase as RNNCellBase
from weft.nn.layers.sparse import Embedding as Embedding
from weft.nn.layers.sparse import EmbeddingBag as EmbeddingBag
from weft.nn.layers.transformer import Transformer as Transformer
from weft.nn.layers.transformer import TransformerDecoder as TransformerDecoder
from weft.nn.layers.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from weft.nn.layers.transformer import TransformerEncoder as TransformerEncoder
from weft.nn.layers.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from weft.nn.layers.upsampling import Upsample as Upsample
from weft.nn.layers.upsampling import UpsamplingBilinear2d as UpsamplingBilinear2d
from weft.nn.layers.upsampling import UpsamplingNearest2d as UpsamplingNearest2d
from weft.nn.module.module import Module as Module
from weft.nn.oneflow.coin_flip import CoinFlip as CoinFlip
from weft.nn.oneflow.fused_layers import CombinedMarginLoss as CombinedMarginLoss
from weft.nn.oneflow.fused_layers import DistributedPariticalFCSample as DistributedPariticalFCSample
from weft.nn.oneflow.fused_layers import FusedBatchNorm1d as FusedBatchNorm1d
from weft.nn.oneflow.fused_layers import FusedBatchNorm2d as FusedBatchNorm2d
from weft.nn.oneflow.fused_layers import FusedBatchNorm3d as FusedBatchNorm3d
from weft.nn.oneflow.fused_layers import FusedMLP as FusedMLP
from weft.nn.oneflow.fused_layers import QuickGELU as QuickGELU
from weft.nn.oneflow.fused_layers import RMSLayerNorm as RMSLayerNorm
from weft.nn.oneflow.quantized_layers import FakeQuantization as FakeQuantization
from weft.nn.oneflow.quantized_layers import MinMaxObserver as MinMaxObserver
from weft.nn.oneflow.quantized_layers import MovingAverageMinMaxObserver as MovingAverageMinMaxObserver
from weft.nn.oneflow.quantized_layers import QatConv1d as QatConv1d
from weft.nn.oneflow.quantized_layers import QatConv2d as QatConv2d
from weft.nn.oneflow.quantized_layers import QatConv3d as QatConv3d
from weft.nn.oneflow.quantized_layers import Quantization as Quantization
from weft.tensor.parameter import Buffer as Buffer
from weft.tensor.parameter import Parameter as Parameter
from weft.tensor.parameter import UninitializedBuffer as UninitializedBuffer
from weft.tensor.parameter import UninitializedParameter as UninitializedParameter

