// A libOpenCL for tests of builds, with two devices: "Plain-Device", whose driver keeps nothing of what it has built,
// and "Keeping-Device" of PoCL's platform, whose driver does. A program's binary is its source with a word before it.
// Everything that a build does not need fails.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view kBinary = "binary of ";

struct FakeDevice {
  std::string_view platform, name;
};
constexpr FakeDevice kDevices[] = {{"Plain Platform", "Plain-Device"},
                                   {"Portable Computing Language", "Keeping-Device"}};

const FakeDevice& Of(const void* handle) { return *static_cast<const FakeDevice*>(handle); }
template <typename Handle>
Handle HandleOf(const FakeDevice& device) {
  return reinterpret_cast<Handle>(const_cast<FakeDevice*>(&device));
}

cl_int Answer(std::string_view text, size_t size, void* value, size_t* size_needed) {
  if (size_needed != nullptr) *size_needed = text.size() + 1;
  if (value != nullptr) {
    std::memset(value, 0, size);
    std::memcpy(value, text.data(), std::min(text.size(), size));
  }
  return CL_SUCCESS;
}

std::string* SourceOf(cl_program program) { return reinterpret_cast<std::string*>(program); }

}  // namespace

// NOLINTBEGIN: the names are OpenCL's.
extern "C" {

cl_int clGetPlatformIDs(cl_uint count, cl_platform_id* platforms, cl_uint* found) {
  if (found != nullptr) *found = 2;
  for (cl_uint i = 0; platforms != nullptr && i < std::min<cl_uint>(count, 2); ++i) {
    platforms[i] = HandleOf<cl_platform_id>(kDevices[i]);
  }
  return CL_SUCCESS;
}
cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t size, void* value, size_t* needed) {
  return Answer(what == CL_PLATFORM_NAME ? Of(platform).platform : "1.2", size, value, needed);
}
cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type, cl_uint, cl_device_id* devices, cl_uint* found) {
  if (found != nullptr) *found = 1;
  if (devices != nullptr) *devices = HandleOf<cl_device_id>(Of(platform));
  return CL_SUCCESS;
}
cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void* value, size_t* needed) {
  if (what == CL_DEVICE_NAME) return Answer(Of(device).name, size, value, needed);
  return Answer("", size, value, needed);  // zero, for what is a number
}

cl_context clCreateContext(const cl_context_properties*, cl_uint, const cl_device_id* devices,
                           void (*)(const char*, const void*, size_t, void*), void*, cl_int* code) {
  *code = CL_SUCCESS;
  return reinterpret_cast<cl_context>(devices[0]);
}
cl_int clReleaseContext(cl_context) { return CL_SUCCESS; }
cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id, cl_command_queue_properties, cl_int* code) {
  *code = CL_SUCCESS;
  return reinterpret_cast<cl_command_queue>(context);
}
cl_int clReleaseCommandQueue(cl_command_queue) { return CL_SUCCESS; }

cl_program clCreateProgramWithSource(cl_context, cl_uint, const char** texts, const size_t* sizes, cl_int* code) {
  *code = CL_SUCCESS;
  return reinterpret_cast<cl_program>(new std::string(texts[0], sizes[0]));
}
cl_program clCreateProgramWithBinary(cl_context, cl_uint, const cl_device_id*, const size_t* sizes,
                                     const unsigned char** binaries, cl_int*, cl_int* code) {
  const std::string_view binary(reinterpret_cast<const char*>(binaries[0]), sizes[0]);
  *code = binary.starts_with(kBinary) ? CL_SUCCESS : CL_INVALID_BINARY;
  return *code == CL_SUCCESS ? reinterpret_cast<cl_program>(new std::string(binary.substr(kBinary.size()))) : nullptr;
}
cl_int clBuildProgram(cl_program, cl_uint, const cl_device_id*, const char*, void (*)(cl_program, void*), void*) {
  return CL_SUCCESS;
}
cl_int clReleaseProgram(cl_program program) {
  delete SourceOf(program);
  return CL_SUCCESS;
}
cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t, void* value, size_t*) {
  const std::string binary = std::string(kBinary) + *SourceOf(program);
  if (what == CL_PROGRAM_BINARY_SIZES) *static_cast<size_t*>(value) = binary.size();
  if (what == CL_PROGRAM_BINARIES) std::memcpy(*static_cast<char**>(value), binary.data(), binary.size());
  return CL_SUCCESS;
}
cl_int clGetProgramBuildInfo(cl_program, cl_device_id, cl_program_build_info, size_t size, void* value,
                             size_t* needed) {
  return Answer("", size, value, needed);
}

cl_mem clCreateBuffer(cl_context, cl_mem_flags, size_t, void*, cl_int* code) {
  *code = CL_INVALID_OPERATION;
  return nullptr;
}
cl_mem clCreateSubBuffer(cl_mem, cl_mem_flags, cl_buffer_create_type, const void*, cl_int* code) {
  *code = CL_INVALID_OPERATION;
  return nullptr;
}
cl_int clReleaseMemObject(cl_mem) { return CL_INVALID_OPERATION; }
cl_kernel clCreateKernel(cl_program, const char*, cl_int* code) {
  *code = CL_INVALID_KERNEL_NAME;
  return nullptr;
}
cl_int clReleaseKernel(cl_kernel) { return CL_INVALID_OPERATION; }
cl_int clGetKernelWorkGroupInfo(cl_kernel, cl_device_id, cl_kernel_work_group_info, size_t, void*, size_t*) {
  return CL_INVALID_OPERATION;
}
cl_int clSetKernelArg(cl_kernel, cl_uint, size_t, const void*) { return CL_INVALID_OPERATION; }
cl_int clEnqueueWriteBuffer(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void*, cl_uint, const cl_event*,
                            cl_event*) {
  return CL_INVALID_OPERATION;
}
cl_int clEnqueueReadBuffer(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void*, cl_uint, const cl_event*,
                           cl_event*) {
  return CL_INVALID_OPERATION;
}
cl_int clEnqueueFillBuffer(cl_command_queue, cl_mem, const void*, size_t, size_t, size_t, cl_uint, const cl_event*,
                           cl_event*) {
  return CL_INVALID_OPERATION;
}
cl_int clEnqueueCopyBuffer(cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event*,
                           cl_event*) {
  return CL_INVALID_OPERATION;
}
cl_int clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*,
                              cl_uint, const cl_event*, cl_event*) {
  return CL_INVALID_OPERATION;
}
cl_int clGetEventInfo(cl_event, cl_event_info, size_t, void*, size_t*) { return CL_INVALID_OPERATION; }
cl_int clGetEventProfilingInfo(cl_event, cl_profiling_info, size_t, void*, size_t*) { return CL_INVALID_OPERATION; }
cl_int clReleaseEvent(cl_event) { return CL_INVALID_OPERATION; }
cl_int clFlush(cl_command_queue) { return CL_SUCCESS; }
cl_int clFinish(cl_command_queue) { return CL_SUCCESS; }

}  // extern "C"
// NOLINTEND
