# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.sysconfig: get_cuda_version, with_cuda, has_rpc_backend_grpc, has_rpc_backend_local, with_mlir, with_mlir_cuda_codegen, with_rdma, cmake_build_type, get_compile_flags, get_include, get_lib, get_liboneflow_link_flags, get_link_flags"""

from typing import Any

from weft.interop.oneflow import (
    get_cuda_version as get_cuda_version, _no as has_rpc_backend_grpc, _no as has_rpc_backend_local,
    with_cuda as with_cuda, _no as with_mlir, _no as with_mlir_cuda_codegen, _no as with_rdma
)

def cmake_build_type() -> Any: ...

def get_compile_flags() -> Any: ...

def get_include() -> Any: ...

def get_lib() -> Any: ...

def get_liboneflow_link_flags() -> Any: ...

def get_link_flags() -> Any: ...
