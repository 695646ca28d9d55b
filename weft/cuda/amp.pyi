# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.cuda.amp: GradScaler, autocast, custom_bwd, custom_fwd"""

from weft import GradScaler as GradScaler
from weft.amp.cuda import autocast as autocast
from weft.amp.custom import custom_bwd as custom_bwd, custom_fwd as custom_fwd
