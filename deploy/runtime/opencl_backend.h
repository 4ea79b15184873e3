// The back end of OpenCL devices: the code is compiled by the device's driver, kernels run in the device's memory.
//
// The compiled code is kept in the folder `hone` of the user's cache ($XDG_CACHE_HOME, else ~/.cache), which only the
// user can write. A run hands everything over in order (inputs, launches, copies, outputs) and waits once.
#ifndef HONE_DEPLOY_RUNTIME_OPENCL_BACKEND_H_
#define HONE_DEPLOY_RUNTIME_OPENCL_BACKEND_H_

#include "deploy/runtime/backend.h"

namespace hone::runtime {

// A BackendLoader. Incompatible: no OpenCL, no such device, too few lanes or too little shared memory, or its compiler
// refuses the code, with its words; IoError: the device fails, out of memory say.
Fault LoadOpenClBackend(const ProgramView& program, std::span<const uint8_t> constants, int threads,
                        std::unique_ptr<Backend>* backend);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_OPENCL_BACKEND_H_
