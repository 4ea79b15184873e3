// SPDX-License-Identifier: Apache-2.0
// The table of the runtime's back ends: which one loads which kind of code. A new back end is a file beside
// opencl_backend.cc and its lines here. Only backend.cc and the back ends include this file; others call LoadBackend.
#ifndef HONE_DEPLOY_RUNTIME_BACKENDS_H_
#define HONE_DEPLOY_RUNTIME_BACKENDS_H_

#include "base/code_kind.h"
#include "deploy/runtime/backend.h"

namespace hone::runtime {

// cpu_backend.cc. Incompatible: the architecture is another one, or CPU features are missing; the text names them.
// BadPackage: the code is not a shared object for this machine, or lacks a kernel. It also loads the units of ONNX
// Runtime (foreign_part.h), whose errors are those of ForeignPart::Load.
LoadFunction LoadCpuBackend;

// opencl_backend.cc. Incompatible: there is no OpenCL or no such device, the device has too few lanes or too little
// shared memory, or its compiler rejects the code (the text has its log). OutOfMemory: the device lacks memory.
// IoError: the device fails.
LoadFunction LoadOpenClBackend;

// cuda_backend.cc. The same errors, for CUDA.
LoadFunction LoadCudaBackend;

// The loader for a kind of code. Null if the kind is unknown, or if this runtime was built without the driver for it.
constexpr LoadFunction* LoaderOf(CodeKind code) {
  switch (code) {
    case CodeKind::kX86_64:
    case CodeKind::kAArch64:
    case CodeKind::kArm:
    case CodeKind::kOnnx:
      return LoadCpuBackend;
    case CodeKind::kOpenCl:
#if HONE_WITH_OPENCL
      return LoadOpenClBackend;
#else
      break;
#endif
    case CodeKind::kPtx:
#if HONE_WITH_CUDA
      return LoadCudaBackend;
#else
      break;
#endif
  }
  return nullptr;
}

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_BACKENDS_H_
