// SPDX-License-Identifier: Apache-2.0
#include "drivers/cuda_api.h"

#include <dlfcn.h>

#include <string_view>

namespace hone::drivers::cuda {
namespace {

// Whether every supported driver has the function. The oldest, CUDA 10.2 of the Jetson Nano, lacks only these two.
constexpr bool IsInEveryVersion(std::string_view name) {
  return name != "cuGraphInstantiateWithFlags" && name != "cuLaunchKernelEx";
}

// Looks up a function. Drivers before CUDA 11.0 have cuDevicePrimaryCtxRelease_v2 only under its name without the
// suffix, with the same arguments.
void* FindFunction(void* library, std::string_view name) {
  void* const found = dlsym(library, name.data());
  if (found != nullptr || name != "cuDevicePrimaryCtxRelease_v2") return found;
  return dlsym(library, "cuDevicePrimaryCtxRelease");
}

constexpr int kNewerPtx = 222;  // CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the PTX is newer than the driver

ErrorKind ErrorKindOf(int code) {
  switch (code) {
    case 2:  // out of memory
      return ErrorKind::kMemory;
    case 46:  // device unavailable: in exclusive mode, and used by another process
      return ErrorKind::kBusy;
    case 34:   // the library is the toolkit's stub, which is only for linking
    case 100:  // no device
      return ErrorKind::kAbsent;
    case 1:    // invalid value
    case 200:  // invalid image
    case 209:  // no binary for the device
    case 218:  // invalid PTX
    case kNewerPtx:
    case 500:  // not found
    case 701:  // too many resources for a launch
    case 801:  // not supported by the device
    case 912:  // sharing groups (a cluster): more or larger than the device supports
      return ErrorKind::kProgram;
    case 700:  // illegal address
    case 702:  // the driver's watchdog ended the launch
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
      return ErrorKind::kFault;
    default:
      return ErrorKind::kDevice;
  }
}

}  // namespace

Error LoadApi(const char* file, std::shared_ptr<const Api>* api) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return {ErrorKind::kAbsent, std::string("no CUDA on this machine: cannot load ") + file + ": " +
                                    (reason != nullptr ? reason : "no reason given") + "; install NVIDIA's driver"};
  }
  auto loaded = std::make_shared<Api>();
  const char* missing = nullptr;
#define HONE_CUDA_FIND(name, ...)                                                        \
  loaded->name = reinterpret_cast<decltype(loaded->name)>(FindFunction(library, #name)); \
  if (loaded->name == nullptr && IsInEveryVersion(#name)) missing = #name;
  HONE_CUDA_FUNCTIONS(HONE_CUDA_FIND)
#undef HONE_CUDA_FIND
  if (missing != nullptr) {
    return {ErrorKind::kAbsent,
            std::string(file) + " belongs to a driver older than CUDA 10.2, the oldest that Hone supports: it lacks " +
                missing};
  }
  *api = std::move(loaded);
  return {};
}

Error Check(const Api& api, int code, const std::string& what) {
  if (code == kSuccess) return {};
  const char* name = nullptr;
  if (api.cuGetErrorName(code, &name) != kSuccess || name == nullptr) name = "CUDA error";
  Error error{ErrorKindOf(code), what + ": " + name + " (" + std::to_string(code) + ")"};
  if (code == kNewerPtx) error.text += "; install a newer driver, or compile for an older architecture";
  return error;
}

}  // namespace hone::drivers::cuda
