# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.asyncs`: ops on a thread of their own. Reading a result waits for it."""

from weft.system.asyncs import Thread as Thread, thread as thread
