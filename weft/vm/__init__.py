"""The virtual machine of the eager road: instructions with const, mut and mut2 operands, the dependencies between their
blobs, and the streams that run them.
"""

from weft.vm.dependency import writable
from weft.vm.instruction import Instruction
from weft.vm.machine import VirtualMachine, vm_of
from weft.vm.trace import Trace, merge, parse, trace, write

__all__ = ["Instruction", "Trace", "VirtualMachine", "merge", "parse", "trace", "vm_of", "writable", "write"]
