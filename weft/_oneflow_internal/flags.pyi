# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._oneflow_internal.flags: with_cuda, cuda_version, has_rpc_backend_grpc, has_rpc_backend_local, with_mlir, with_mlir_cuda_codegen, with_rdma"""

from weft.interop.oneflow import (
    get_cuda_version as cuda_version, _no as has_rpc_backend_grpc, _no as has_rpc_backend_local, with_cuda as with_cuda,
    _no as with_mlir, _no as with_mlir_cuda_codegen, _no as with_rdma
)
