# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.optim.swa_utils: AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn, get_swa_avg_fn, get_swa_multi_avg_fn, update_bn"""

from weft.nn.averaging import (
    AveragedModel as AveragedModel, get_ema_avg_fn as get_ema_avg_fn, get_ema_multi_avg_fn as get_ema_multi_avg_fn,
    get_swa_avg_fn as get_swa_avg_fn, get_swa_multi_avg_fn as get_swa_multi_avg_fn, update_bn as update_bn
)
from weft.optim.lr_scheduler.averaged import SWALR as SWALR
