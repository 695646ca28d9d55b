"""Which chains may be captured as CUDA graphs, and when they are: shown without a device (tests/cuda has one)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from weft.graph.on_cuda.captured import Captures, repeats, writes
from weft.ops import OPS
from weft.ops.declaration import op
from weft.plan.calls import Call, Place, Ref, Result, Step

CPU, META = torch.device("cpu"), torch.device("meta")


class Imitated(Captures):
    """Captures what it is asked to, or nothing."""

    def __init__(self, able: bool) -> None:
        super().__init__(CPU)
        self.able, self.log = able, list[str]()

    def replay(self, function: Callable[[], object], generators: Any) -> Callable[[], object] | None:
        self.log.append("captured" if self.able else "broken off")
        return partial(self.log.append, "replayed") if self.able else None


@pytest.mark.parametrize("able", [True, False])
def test_the_second_act_is_captured(able: bool) -> None:
    device, x = Imitated(able), torch.zeros(2)
    function = device.of(partial(device.log.append, "ran"), [x], [])
    for _ in range(4):
        function()
    assert device.log == (["ran", "captured"] + ["replayed"] * 3 if able else ["ran", "broken off"] + ["ran"] * 3)
    assert x._version == 3 * able  # kernels that are launched so don't count what they overwrite


def step(*calls: Call) -> Step:
    return Step(calls, 0)


def call(op: str, *args: Any) -> Call:
    return Call(op, args, (Result("y", "float32", (2,), Place("arena")),))


@pytest.mark.parametrize("op", ["nonzero", "masked_select", "standard_gamma", "box.all_reduce", "unheard_of"])
def test_what_data_or_others_decide_is_not_captured(op: str) -> None:
    assert repeats(step(call("relu", Ref("x")), call("box.slice", Ref("x"))), {}, CPU)
    assert not repeats(step(call("relu", Ref("x")), call(op, Ref("x"))), {}, CPU)
    for within in ("relu", op):
        fused = replace(call("fused", Ref("x")), calls=(call("gelu", Ref("x")), call(within, Ref("y"))))
        assert repeats(step(fused), {}, CPU) is (within == "relu")


def test_an_op_of_the_program_is_not_captured() -> None:
    def seen_by_its_program(x: torch.Tensor) -> torch.Tensor:
        return x

    declared = op("... -> ...")(seen_by_its_program)
    assert not repeats(step(call(declared.name, Ref("x"))), {}, CPU)
    del OPS[declared.name]


@pytest.mark.parametrize("holds", [lambda t: t, lambda t: [1, t], lambda t: ({"lr": t},), lambda t: t.add_])
def test_values_on_the_host_are_read_anew_at_each_act(holds: Callable[[torch.Tensor], Any]) -> None:
    cells = {"a": holds(torch.empty(2, device="meta")), "b": 2.0, "c": torch.relu}
    assert repeats(step(call("relu", Ref("x"))), cells, META)
    assert not repeats(step(call("relu", Ref("x"))), cells | {"d": holds(torch.empty(()))}, META)


def test_what_a_step_overwrites() -> None:
    names = dict(zip("wgmvx", torch.zeros(5, 1), strict=True))
    update = Call("sgd_update", ((Ref("w"), Ref("v")), (Ref("g"), Ref("g")), (Ref("m"),), 0.1), ())
    assert [id(t) for t in writes(step(call("relu", Ref("x")), update), names)] == [id(names[n]) for n in "wvm"]
