// The back end of this CPU: kernels are functions of a shared object, called on memory of this process.
//
// Inputs, outputs and constants are used where they are: nothing is copied.
#ifndef HONE_DEPLOY_RUNTIME_CPU_BACKEND_H_
#define HONE_DEPLOY_RUNTIME_CPU_BACKEND_H_

#include "deploy/runtime/backend.h"

namespace hone::runtime {

// A BackendLoader. Incompatible names the architecture or the CPU features that are missing; BadPackage: the code is no
// shared object for this machine, or lacks a kernel.
Fault LoadCpuBackend(const ProgramView& program, std::span<const uint8_t> constants, int threads,
                     std::unique_ptr<Backend>* backend);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_CPU_BACKEND_H_
