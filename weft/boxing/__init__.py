"""Boxing: move a tensor from any (placement, sbp) to any other. Routes are data; they are planned, run and simulated.

The path of a conversion through this folder:

    planner.route     a search over cost (`costs`, `links`) gives a Route: a short list of steps (`steps`, `routes`)
    lowering.lower    one rank's part of each step: its group, its slices, whom it sends to (`overlap`)
    execute.run       runs that part through a transport
"""

from __future__ import annotations

from weft.boxing.execute import run
from weft.boxing.links import ONE_HOST, Link, Links
from weft.boxing.lowering import LocalStep, lower
from weft.boxing.planner import cost, route
from weft.boxing.routes import Route, parse
from weft.boxing.steps import State

__all__ = [
    "ONE_HOST", "Link", "Links", "LocalStep", "Route", "State", "cost", "lower", "parse",
    "route", "run",
]  # fmt: skip
