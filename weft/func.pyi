# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.func: vmap, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, functional_call, stack_module_state"""


from weft.autograd.transforms import grad as grad
from weft.autograd.transforms import grad_and_value as grad_and_value
from weft.autograd.transforms import hessian as hessian
from weft.autograd.transforms import jacfwd as jacfwd
from weft.autograd.transforms import jacrev as jacrev
from weft.autograd.transforms import jvp as jvp
from weft.autograd.transforms import vjp as vjp
from weft.autograd.vmap import vmap as vmap
from weft.nn.utils.stateless import functional_call as functional_call
from weft.nn.utils.stateless import stack_module_state as stack_module_state

