#include "deploy/runtime/backend.h"

#include "deploy/runtime/cpu_backend.h"
#if HONE_WITH_OPENCL
#include "deploy/runtime/opencl_backend.h"
#endif

namespace hone::runtime {

Fault LoadBackend(const ProgramView& program, std::span<const uint8_t> constants, int threads,
                  std::unique_ptr<Backend>* backend) {
  switch (program.manifest->code) {
    case package::CodeKind::kX86_64:
    case package::CodeKind::kAArch64:
    case package::CodeKind::kArm:
      return LoadCpuBackend(program, constants, threads, backend);
    case package::CodeKind::kOpenCl:
#if HONE_WITH_OPENCL
      return LoadOpenClBackend(program, constants, threads, backend);
#else
      return Incompatible("the code is for OpenCL, and this runtime was built without its headers (opencl-headers)");
#endif
  }
  return BadPackage("its code is of an unknown kind");
}

}  // namespace hone::runtime
