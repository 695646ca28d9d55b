"""Refuse graphs that write a variable whose memory overlaps another's, unless the trace knew them as views; or one
whose value the program has read while it was traced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weft.autograd.freshness import shares_memory
from weft.compiler.passes.dead_code import written
from weft.core.errors import GraphError, TraceError
from weft.job.aliasing import overlap
from weft.job.job import Job
from weft.job.value import Value
from weft.tensor.blob import blob_of
from weft.tensor.tensor import Tensor, View


def refuse_overlaps(job: Job) -> None:
    """Raise if a variable that the job writes shares memory with another that the trace took as separate."""
    changed = {v for n in job.nodes for v in written(n)}
    if not changed:
        return
    for (a, t), (b, u) in _overlapping(job.variables):
        if a in changed and b not in changed and _sees(u, t):
            continue
        if b in changed and a not in changed and _sees(t, u):
            continue
        if a in changed or b in changed:
            first, second = (a, b) if a in changed else (b, a)
            raise GraphError(
                f"{job.name} writes {first.name}, and {second.name} lies in the same memory: a graph can't tell what "
                f"{second.name} holds by then. Make one of them in build() as a view of the other, or give it memory "
                "of its own: clone()"
            )


def refuse_what_was_read(job: Job, read: Mapping[int, tuple[Tensor, str]]) -> None:
    """Raise if the job writes a tensor that `read` has, by blob, with the line that read its value."""
    for v in {v for n in job.nodes for v in written(n)} if read else ():
        _, line = read.get(id(blob_of(job.variables[v])), (None, None))
        if line is not None:
            raise TraceError(
                f"build() has read the value of {v.name} ({line}), and {job.name} writes it: what followed from the "
                "value would be the same in every launch. Keep it a tensor, as in flow.where(condition, a, b) or "
                "x.index_copy(0, i, y), or read and write it outside of build()"
            )


def _sees(view: Tensor, base: Tensor) -> bool:
    """Whether one is known to be a view of the other."""
    while view._view_of is not None and shares_memory(view):
        view = View(*view._view_of).base
        if blob_of(view) is blob_of(base):
            return True
    return False


def _overlapping(variables: dict[Value, Tensor]) -> Iterator[tuple[tuple[Value, Tensor], tuple[Value, Tensor]]]:
    spans = []
    for v, t in variables.items():
        data = blob_of(t).data
        if data is not None and data.numel() and data.data_ptr():  # on meta none has memory
            last = sum((n - 1) * step for n, step in zip(data.shape, data.stride(), strict=True))
            low = data.data_ptr()
            spans.append((low, low + (last + 1) * data.element_size(), v, t, data))
    spans.sort(key=lambda s: s[0])
    for i, (_, high, v, t, data) in enumerate(spans):
        for j in range(i + 1, len(spans)):
            low, _, w, u, other = spans[j]
            if low >= high:
                break
            if data.device == other.device and overlap(data, other):
                yield (v, t), (w, u)
