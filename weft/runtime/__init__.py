"""Plans at run time: the actor, the bus that carries its messages, and the executor that gives it threads."""

from weft.runtime.actor import Actor, Turn
from weft.runtime.executor import Executor, Ticket
from weft.runtime.message import Message

__all__ = ["Actor", "Executor", "Message", "Ticket", "Turn"]
