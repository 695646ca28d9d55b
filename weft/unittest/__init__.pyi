# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.unittest: TestCase, skip_unless_1n1d, skip_unless_1n2d, skip_unless_1n4d, skip_unless_2n1d, skip_unless_2n2d, skip_unless_2n4d"""

from collections.abc import Callable
from typing import Any

from unittest.case import TestCase as TestCase
from weft.unittest import env as env

def skip_unless_1n1d() -> Callable[[Any], Any]: ...

def skip_unless_1n2d() -> Callable[[Any], Any]: ...

def skip_unless_1n4d() -> Callable[[Any], Any]: ...

def skip_unless_2n1d() -> Callable[[Any], Any]: ...

def skip_unless_2n2d() -> Callable[[Any], Any]: ...

def skip_unless_2n4d() -> Callable[[Any], Any]: ...
