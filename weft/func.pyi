# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.func: vmap, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, functional_call, stack_module_state"""

from weft import vmap as vmap
from weft.autograd.transforms import (
    grad as grad, grad_and_value as grad_and_value, hessian as hessian, jacfwd as jacfwd, jacrev as jacrev, jvp as jvp,
    linearize as linearize, vjp as vjp
)
from weft.nn.utils.stateless import functional_call as functional_call, stack_module_state as stack_module_state
