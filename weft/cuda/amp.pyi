# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.cuda.amp: GradScaler, autocast, custom_bwd, custom_fwd"""

from weft.amp.cuda import autocast as autocast
from weft.amp.custom import custom_bwd as custom_bwd, custom_fwd as custom_fwd
from weft.amp.scaler import GradScaler as GradScaler
