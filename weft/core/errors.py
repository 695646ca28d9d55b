"""Every error that Weft raises on purpose, named after what the user can do about it."""

from __future__ import annotations

CONVERT = ". It is torch's: flow.from_torch(module), nn.Parameter(tensor) make it Weft's, over the same memory"


class WeftError(Exception):
    """The base class of every exception that Weft raises on purpose."""


class ArgumentError(WeftError, TypeError, RuntimeError):
    """A call's arguments fit none of the declared signatures."""


class OptionError(ArgumentError, ValueError):
    """An option out of range: a negative learning rate, a probability above one."""


class AssertedError(OptionError, AssertionError):
    """An option that PyTorch and OneFlow refuse by an assertion."""


class MissingFormulaError(OptionError, NotImplementedError):
    """A formula that isn't implemented, or a method that a custom class should have."""


class ShapeError(WeftError, RuntimeError, ValueError):
    """Shapes that are incompatible, or that the data doesn't have."""


class CheckpointError(WeftError, RuntimeError, ValueError):
    """A file is corrupt, or doesn't fit what it is loaded into."""


class MissingKeyError(ArgumentError, CheckpointError, KeyError):
    """A dict without a key that it must have."""

    __str__ = Exception.__str__  # a KeyError's shows its text in quotes


class OutOfMemoryError(ShapeError):
    """An allocation larger than the available memory."""


class DtypeError(WeftError, TypeError, RuntimeError):
    """A dtype that the op can't take, or that can't have a gradient."""


class NoDtypeError(DtypeError, ValueError):
    """A name or a value that no dtype has."""


class MissingKernelError(DtypeError, NotImplementedError):
    """A dtype or device that the op has no kernel for."""


class DeviceError(WeftError, RuntimeError):
    """Operands on different devices, or a device that this machine doesn't have."""


class NoDeviceError(DeviceError, TypeError):
    """A name or an index that no device has."""


class IndexingError(WeftError, IndexError, RuntimeError):
    """A dimension, an index or a label out of range."""


class SbpError(WeftError, RuntimeError, ValueError):
    """An sbp that doesn't fit its tensor or its placement."""


class PlacementError(WeftError, RuntimeError, ValueError):
    """A placement that names ranks outside the world, or operands in different worlds."""


class AutogradError(WeftError, RuntimeError):
    """A gradient that was asked for can't be computed."""


class TraceError(WeftError, RuntimeError):
    """The program can't be traced into a graph."""


class CompileError(WeftError, RuntimeError):
    """A Job or a Plan is not well formed."""


class GraphError(WeftError, RuntimeError):
    """A graph was called with other inputs than it was compiled for, or can't run."""


class EndOfData(WeftError, EOFError):
    """A loader has no further batch."""


class RankError(WeftError, RuntimeError):
    """Another rank raised, died or diverged."""


class DeadlineError(RankError, TimeoutError):
    """A wait took longer than its deadline."""


class SecretError(RankError):
    """A message isn't signed with the secret of the run."""


class OpError(WeftError, RuntimeError):
    """A kernel refused its operands."""


def ours(error: BaseException) -> bool:
    """Whether an error comes from Weft or a kernel, rather than from the user's code (a callback, a signal handler)."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in OURS:
            return False
        trace = trace.tb_next
    return True


OURS = ("", "weft", "torch", "numpy", "sympy")
