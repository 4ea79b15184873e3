// SPDX-License-Identifier: Apache-2.0
#include "drivers/opencl_api.h"

#include <dlfcn.h>

namespace hone::drivers::opencl {
namespace {

struct Code {
  cl_int code;
  const char* name;
  ErrorKind kind;
};

#define HONE_CODE(name, kind) {name, #name, ErrorKind::kind}
constexpr Code kCodes[] = {
    HONE_CODE(CL_DEVICE_NOT_FOUND, kAbsent),
    HONE_CODE(CL_DEVICE_NOT_AVAILABLE, kDevice),
    HONE_CODE(CL_COMPILER_NOT_AVAILABLE, kDevice),
    HONE_CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE, kMemory),
    HONE_CODE(CL_OUT_OF_RESOURCES, kProgram),
    HONE_CODE(CL_OUT_OF_HOST_MEMORY, kMemory),
    HONE_CODE(CL_BUILD_PROGRAM_FAILURE, kProgram),
    HONE_CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, kProgram),
    HONE_CODE(CL_INVALID_VALUE, kProgram),
    HONE_CODE(CL_INVALID_DEVICE, kDevice),
    HONE_CODE(CL_INVALID_CONTEXT, kDevice),
    HONE_CODE(CL_INVALID_COMMAND_QUEUE, kDevice),
    HONE_CODE(CL_INVALID_MEM_OBJECT, kProgram),
    HONE_CODE(CL_INVALID_BINARY, kProgram),
    HONE_CODE(CL_INVALID_BUILD_OPTIONS, kProgram),
    HONE_CODE(CL_INVALID_PROGRAM, kProgram),
    HONE_CODE(CL_INVALID_PROGRAM_EXECUTABLE, kProgram),
    HONE_CODE(CL_INVALID_KERNEL_NAME, kProgram),
    HONE_CODE(CL_INVALID_KERNEL_DEFINITION, kProgram),
    HONE_CODE(CL_INVALID_KERNEL, kProgram),
    HONE_CODE(CL_INVALID_ARG_INDEX, kProgram),
    HONE_CODE(CL_INVALID_ARG_VALUE, kProgram),
    HONE_CODE(CL_INVALID_ARG_SIZE, kProgram),
    HONE_CODE(CL_INVALID_KERNEL_ARGS, kProgram),
    HONE_CODE(CL_INVALID_WORK_DIMENSION, kProgram),
    HONE_CODE(CL_INVALID_WORK_GROUP_SIZE, kProgram),
    HONE_CODE(CL_INVALID_WORK_ITEM_SIZE, kProgram),
    HONE_CODE(CL_INVALID_GLOBAL_WORK_SIZE, kProgram),
    HONE_CODE(CL_INVALID_OPERATION, kProgram),
    HONE_CODE(CL_INVALID_BUFFER_SIZE, kProgram),
    HONE_CODE(CL_MISALIGNED_SUB_BUFFER_OFFSET, kProgram),
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR", ErrorKind::kAbsent},
};
#undef HONE_CODE

}  // namespace

Error LoadApi(const char* file, std::shared_ptr<const Api>* api) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return {ErrorKind::kAbsent,
            std::string("no OpenCL on this machine: cannot load ") + file + ": " +
                (reason != nullptr ? reason : "no reason given") +
                "; install an OpenCL loader (Debian: ocl-icd-libopencl1) and the driver of the device"};
  }
  auto loaded = std::make_shared<Api>();
  const char* missing = nullptr;
#define HONE_OPENCL_FIND(name)                                               \
  loaded->name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  if (loaded->name == nullptr) missing = #name;
  HONE_OPENCL_FUNCTIONS(HONE_OPENCL_FIND)
#undef HONE_OPENCL_FIND
  if (missing != nullptr) {
    return {ErrorKind::kAbsent, std::string(file) + " is not an OpenCL 1.2 library: it lacks " + missing};
  }
  *api = std::move(loaded);
  return {};
}

Error Check(cl_int code, const std::string& what) {
  if (code == CL_SUCCESS) return {};
  for (const Code& known : kCodes) {
    if (known.code == code) return {known.kind, what + ": " + known.name + " (" + std::to_string(code) + ")"};
  }
  return {ErrorKind::kDevice, what + ": OpenCL error " + std::to_string(code)};
}

Error CheckDone(cl_int code, const std::string& what) {
  Error error = Check(code, what);
  if (code == CL_OUT_OF_RESOURCES || code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
    error.kind = ErrorKind::kFault;
  }
  return error;
}

}  // namespace hone::drivers::opencl
