"""The plan of one rank: tasks, registers and streams, as text and as values, and the proof that it can run."""

from weft.plan.ids import TaskId, decode, encode
from weft.plan.plan import Plan, Port, Register, Stream, Task, parse
from weft.plan.verify import verify

__all__ = ["Plan", "Port", "Register", "Stream", "Task", "TaskId", "decode", "encode", "parse", "verify"]
