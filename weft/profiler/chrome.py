"""Chrome's trace format, which ui.perfetto.dev and chrome://tracing show: a process per rank, a row per thread.

Times in a file are microseconds since its `baseTimeNanoseconds`, which counts from 1970: so ranks' files can be merged,
and nanoseconds aren't lost to rounding. Ranks of one host share a clock; between hosts, accuracy is that of the clocks.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Sequence
from typing import Any, Protocol

from weft.core.errors import ArgumentError
from weft.core.reading import opened, parsed, shortened
from weft.vm.trace import write

Document = dict[str, Any]


class Exports(Protocol):
    """An object that can export a rank's trace."""

    def chrome_trace(self) -> Document: ...


def merge(traces: Sequence[str | os.PathLike[str] | Document | Exports], path: str | os.PathLike[str]) -> Document:
    """Write several ranks' traces, files or profiles, to one file on one clock that starts with the first event."""
    if isinstance(traces, (str, os.PathLike)) or not traces:
        raise ArgumentError(f"merge takes a list, like merge(['0.json', '1.json'], 'all.json'); got {traces!r}")
    read = [_read(t) for t in traces]
    base = min(d["baseTimeNanoseconds"] for d in read if any("ts" in e for e in d["traceEvents"]) or len(read) == 1)
    events = []
    for d in read:
        later = (d["baseTimeNanoseconds"] - base) / 1000
        events += [e | {"ts": round(e["ts"] + later, 3)} if "ts" in e else e for e in d["traceEvents"]]
    events.sort(key=lambda e: e.get("ts", -1.0))
    merged = {"traceEvents": events, "displayTimeUnit": "ns", "baseTimeNanoseconds": base}
    write(path, merged)
    return merged


def _read(source: Any) -> Document:
    if isinstance(source, (str, os.PathLike)):
        source = _loaded(os.fspath(source))
    elif not isinstance(source, dict) and hasattr(source, "chrome_trace"):
        source = source.chrome_trace()
    if not isinstance(source, dict) or not {"traceEvents", "baseTimeNanoseconds"} <= source.keys():
        raise ArgumentError(
            "merge takes profiles, and files that p.export_chrome_trace(path) wrote: they say when their clock began"
        )
    events = source["traceEvents"]
    if not _number(source["baseTimeNanoseconds"]) or not isinstance(events, list):
        raise ArgumentError("merge: a trace has a list of events and a number of nanoseconds, when its clock began")
    for event in events:
        if not isinstance(event, dict) or not _number(event.get("ts", 0)):
            raise ArgumentError(f"merge: {shortened(event)} is no event: those are dicts, and their `ts` numbers")
    return source


def _loaded(path: str) -> Any:
    def refuse(why: str) -> ArgumentError:
        return ArgumentError(f"merge: {path} is not JSON ({why}); p.export_chrome_trace(path) writes such files")

    with opened(path, ArgumentError) as file:
        data = file.read()
    try:
        return parsed(gzip.decompress(data) if path.endswith(".gz") else data, refuse)
    except (gzip.BadGzipFile, EOFError, zlib.error) as cause:
        raise refuse(f"nor is it gzip's: {cause}") from None


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e30
