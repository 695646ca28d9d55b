"""From any (placement, sbp) to any other: routes as data, how to find them, run them and imagine them.

The way a conversion takes through this folder:

    planner.route     a search over cost (`costs`, `links`) gives a Route: a short list of steps (`steps`, `routes`)
    lowering.lower    one rank's part of each step: its group, its slices, whom it sends to (`overlap`)
    execute.run       does that part through a transport; `simulate` does every rank's part in one process
"""

from __future__ import annotations

from weft.boxing.execute import run
from weft.boxing.links import ONE_HOST, Link, Links
from weft.boxing.lowering import LocalStep, lower
from weft.boxing.planner import cost, route
from weft.boxing.routes import Route, backward_sbp, parse
from weft.boxing.steps import State

__all__ = [
    "ONE_HOST", "Link", "Links", "LocalStep", "Route", "State", "backward_sbp", "cost", "lower", "parse",
    "route", "run",
]  # fmt: skip
