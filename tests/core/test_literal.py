"""Arguments as text."""

from __future__ import annotations

import gc
import threading

from weft.core import literal

TEXT = f"({'(1, (2, 3)), ' * 30}), %x, k=(slice(1, 2, None),)"


def test_a_thread_may_read_while_another_does() -> None:
    """Also amid the making of its syntax tree, where the collector lets others go on."""
    found: list[object] = []
    others: list[threading.Thread] = []
    reader = threading.current_thread()

    def read() -> None:
        found.append(literal.read(TEXT, str))

    def let_go(phase: str, info: dict[str, int]) -> None:
        if threading.current_thread() is reader and phase == "start" and len(others) < 10:
            others.append(threading.Thread(target=read))
            others[-1].start()
            others[-1].join(0.01)

    threshold = gc.get_threshold()
    gc.callbacks.append(let_go)
    gc.set_threshold(20, 1000, 1000)
    try:
        read()
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(let_go)
        for t in others:
            t.join()
    assert found == [found[0]] * 11
