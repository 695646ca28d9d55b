# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.hub."""

from collections.abc import Callable
from os import PathLike
import torch
from typing import Any

__all__ = [
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"
]

class _Faketqdm:
    def __init__(
        self, total: Any = None, disable: Any = False, unit: Any = None, *args: Any, **kwargs: Any
    ) -> None: ...
    def update(self, n: Any) -> Any: ...
    def set_description(self, *args: Any, **kwargs: Any) -> Any: ...
    def write(self, s: Any) -> Any: ...
    def close(self) -> Any: ...

def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None: ...
def get_dir() -> str: ...
def help(
    github: Any, model: Any, force_reload: Any = False, skip_validation: Any = False, trust_repo: Any = 'check'
) -> Any: ...
def list(
    github: Any, force_reload: Any = False, skip_validation: Any = False, trust_repo: Any = 'check', verbose: Any = True
) -> Any: ...
def load(
    repo_or_dir: Any, model: Any, *args: Any, source: Any = 'github', trust_repo: Any = 'check',
    force_reload: Any = False, verbose: Any = True, skip_validation: Any = False, **kwargs: Any
) -> Any: ...
def load_state_dict_from_url(
    url: str, model_dir: str | None = None,
    map_location: Callable[[torch.UntypedStorage, str], torch.UntypedStorage] | torch.device | str | dict[str, str] | None = None,
    progress: bool = True, check_hash: bool = False, file_name: str | None = None, weights_only: bool = False
) -> dict[str, Any]: ...
def set_dir(d: str | PathLike) -> None: ...
tqdm = _Faketqdm
