"""A declared op doesn't change: what was written of it would say something else."""

from __future__ import annotations

import pytest

import weft as flow
from weft.ops import OPS
from weft.ops.declaration import WRITTEN_LATER


def test_nothing_is_assigned_to_a_declared_op() -> None:
    flow.relu(flow.ones(1))
    for op in OPS.values():
        before = dict(vars(op))
        for name in before.keys() - WRITTEN_LATER | {"another"}:
            with pytest.raises(AttributeError) as found:
                setattr(op, name, None)
            assert f"{op.name}.{name} = ...: an op is declared once" in str(found.value)
        assert vars(op) == before


def test_its_caches_are_written_when_they_are_first_needed() -> None:
    op, x = OPS["relu"], flow.ones(1, requires_grad=True)
    said = {k: v for k, v in vars(op).items() if k not in WRITTEN_LATER}
    op(x).backward()
    assert op.unpack is not None and getattr(op.entry, "__self__", None) is not op
    assert {k: v for k, v in vars(op).items() if k not in WRITTEN_LATER} == said
