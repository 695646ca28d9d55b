"""The interpreters: eager on local tensors, eager on global ones, lazy into a job. `stack.py` chooses."""

from weft.core.dispatch import hooks
from weft.tensor.blob import Blob
from weft.vm import vm_of


def _wait_read(blob: Blob) -> None:
    vm_of().wait_read(blob)


def _wait_write(blob: Blob) -> None:
    vm_of().wait_write(blob)


def _wait_over(blob: Blob) -> None:
    vm_of().wait_write(blob, afresh=True)


hooks.wait_read, hooks.wait_write, hooks.wait_over = _wait_read, _wait_write, _wait_over
