"""The job: the logical graph of one nn.Graph, as data and as text. Tracing builds it; passes rewrite it."""

from weft.job.job import Job
from weft.job.text import folded, parse, show
from weft.job.value import Node, Value

Job.__str__ = folded  # type: ignore[assignment,method-assign]

__all__ = ["Job", "Node", "Value", "folded", "parse", "show"]
