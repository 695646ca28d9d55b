from __future__ import annotations

from weft.boxing.links import ONE_HOST, Hosts, Links
from weft.core.placement import Placement


def test_how_groups_lie_on_hosts() -> None:
    grid = Placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
    by_four = Links(hosts=lambda r: r // 4)
    assert by_four.of_axis(grid, 0) == Hosts(2, 1)
    assert by_four.of_axis(grid, 1) == Hosts(1, 4)
    assert Links(hosts=lambda r: r // 2).of_axis(grid, 1) == Hosts(2, 2)
    assert Links(hosts=lambda r: min(r, 1)).of_axis(grid, 1) == Hosts(2, 0)  # 1 and 3
    assert ONE_HOST.of_axis(grid, 0) == Hosts(1, 2)


def test_an_exchange_uses_the_slowest_link_it_may_need() -> None:
    by_two = Links(hosts=lambda r: r // 2)
    first, second = Placement("cpu", [0, 1]), Placement("cpu", [2, 3])
    assert by_two.of_exchange(first, first) == by_two.inside["cpu"]
    assert by_two.of_exchange(first, second) == by_two.between["cpu"]
    assert ONE_HOST.of_exchange(first, second) == ONE_HOST.inside["cpu"]
