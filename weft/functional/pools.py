"""nn.functional's pools of largest values, which give the places of the values too if asked."""

from __future__ import annotations

from typing import Any

from weft.functional.table import calling, public
from weft.tensor.tensor import Tensor


def _max_pool(name: str) -> None:
    values, both = calling(name), calling(f"{name}_with_indices")

    def pool(
        x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:  # fmt: skip
        return (both if return_indices else values)(x, kernel_size, stride, padding, dilation, ceil_mode)

    _name(pool, name, "The largest of each window; with `return_indices`, where it was, too.")


def _adaptive_max_pool(name: str) -> None:
    both = calling(name)

    def pool(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        found = both(x, output_size)
        return found if return_indices else found[0]

    def where(x: Tensor, output_size: Any) -> Any:
        return both(x, output_size)

    _name(pool, name, "The largest of windows that make the given size; with `return_indices`, where it was, too.")
    _name(where, f"{name}_with_indices", "The largest of windows that make the given size, and where each was.")


def _name(pool: Any, name: str, doc: str) -> None:
    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = doc
    public("neural")(pool)


for _d in (1, 2, 3):
    _max_pool(f"max_pool{_d}d")
    _adaptive_max_pool(f"adaptive_max_pool{_d}d")
