// SPDX-License-Identifier: Apache-2.0
#include "drivers/cuda_api.h"

#include <dlfcn.h>

#include <string_view>

namespace hone::drivers::cuda {
namespace {

// Drivers of old boards lack them (CUDA 10.2, of the Jetson Nano); all else they have.
constexpr bool IsInAll(std::string_view name) {
  return name != "cuGraphInstantiateWithFlags" && name != "cuLaunchKernelEx";
}

// One function they have under another name alone: CUDA 11.0 gave it a suffix, and did not change what it is called
// with.
void* FindFunction(void* library, std::string_view name) {
  void* const found = dlsym(library, name.data());
  if (found != nullptr || name != "cuDevicePrimaryCtxRelease_v2") return found;
  return dlsym(library, "cuDevicePrimaryCtxRelease");
}

constexpr int kNewerPtx = 222;  // than the driver knows

Trouble TroubleOf(int code) {
  switch (code) {
    case 2:  // out of memory
      return Trouble::kMemory;
    case 46:  // a mode for one process, and another has it
      return Trouble::kBusy;
    case 34:   // a toolkit's library that can only be linked with
    case 100:  // no device
      return Trouble::kAbsent;
    case 1:    // invalid value
    case 200:  // invalid image
    case 209:  // no binary for the device
    case 218:  // invalid PTX
    case kNewerPtx:
    case 500:  // not found
    case 701:  // too many resources for a launch
    case 801:  // not supported by the device
    case 912:  // groups that share copies, more or larger than it takes
      return Trouble::kProgram;
    case 700:  // illegal address
    case 702:  // ended by the driver's watchdog
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
      return Trouble::kFault;
    default:
      return Trouble::kDevice;
  }
}

}  // namespace

Error LoadApi(const char* file, std::shared_ptr<const Api>* api) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return {Trouble::kAbsent, std::string("no CUDA on this machine: cannot load ") + file + ": " +
                                  (reason != nullptr ? reason : "no reason given") + "; install NVIDIA's driver"};
  }
  auto loaded = std::make_shared<Api>();
  const char* missing = nullptr;
#define HONE_CUDA_FIND(name, ...)                                                        \
  loaded->name = reinterpret_cast<decltype(loaded->name)>(FindFunction(library, #name)); \
  if (loaded->name == nullptr && IsInAll(#name)) missing = #name;
  HONE_CUDA_FUNCTIONS(HONE_CUDA_FIND)
#undef HONE_CUDA_FIND
  if (missing != nullptr) {
    return {
        Trouble::kAbsent,
        std::string(file) + " is of a driver older than CUDA 10.2, the oldest that Hone can use: it lacks " + missing};
  }
  *api = std::move(loaded);
  return {};
}

Error Check(const Api& api, int code, const std::string& what) {
  if (code == kSuccess) return {};
  const char* name = nullptr;
  if (api.cuGetErrorName(code, &name) != kSuccess || name == nullptr) name = "CUDA error";
  Error error{TroubleOf(code), what + ": " + name + " (" + std::to_string(code) + ")"};
  if (code == kNewerPtx) error.text += "; install a newer driver, or compile for an older architecture";
  return error;
}

}  // namespace hone::drivers::cuda
