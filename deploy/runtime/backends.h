// SPDX-License-Identifier: Apache-2.0
// The back ends of the runtime: which one runs which kind of code. A new one is a file beside opencl_backend.cc, and
// its lines here. For backend.cc and for them; others call LoadBackend.
#ifndef HONE_DEPLOY_RUNTIME_BACKENDS_H_
#define HONE_DEPLOY_RUNTIME_BACKENDS_H_

#include "base/code_kind.h"
#include "deploy/runtime/backend.h"

namespace hone::runtime {

// cpu_backend.cc. Incompatible names the architecture or the CPU features that are missing; BadPackage: the code is no
// shared object for this machine, or lacks a kernel.
LoadFunction LoadCpuBackend;

// opencl_backend.cc. Incompatible: no OpenCL, no such device, too few lanes or too little shared memory, or its
// compiler refuses the code, with its words; OutOfMemory: of the device; IoError: the device fails.
LoadFunction LoadOpenClBackend;

// cuda_backend.cc. The same, of CUDA.
LoadFunction LoadCudaBackend;

// Null where this runtime was built without the driver of that kind.
constexpr LoadFunction* LoaderOf(CodeKind code) {
  switch (code) {
    case CodeKind::kX86_64:
    case CodeKind::kAArch64:
    case CodeKind::kArm:
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
