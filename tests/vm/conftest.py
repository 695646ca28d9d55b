from __future__ import annotations

from collections.abc import Iterator

import pytest

from weft.core.rank import Rank
from weft.vm.machine import VirtualMachine


@pytest.fixture
def vm() -> Iterator[VirtualMachine]:
    machine = VirtualMachine(Rank(), deadline=60)
    yield machine
    machine.sync()
    machine.close()
    assert not machine.pending()
