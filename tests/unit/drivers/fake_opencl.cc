// SPDX-License-Identifier: Apache-2.0
// A fake libOpenCL for tests of builds and of faults, with two devices: "Plain-Device", whose driver has no cache of
// binaries, and "Keeping-Device" on PoCL's platform, whose driver has one. A program's binary is its source after a
// prefix. Every program has the kernels of this file, which compute when they are launched.
//
// The kernel "fault" simulates an illegal address. As with NVIDIA's driver, its event then has CL_OUT_OF_RESOURCES, and
// every later call that needs the device returns it. The kernel "tick" takes kTick by the device's clock, which counts
// from 1970.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view kBinary = "binary of ";
constexpr std::chrono::nanoseconds kTick{300};
constexpr cl_ulong kSince1970 = 1'760'000'000'000'000'000;

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

// A buffer, or a part of one.
struct Memory {
  std::shared_ptr<std::vector<char>> whole;
  size_t begin = 0, bytes = 0;
  char* data() const { return whole->data() + begin; }
};
struct FakeKernel {
  std::string name;
  std::map<cl_uint, const Memory*> arguments;
};
struct Event {
  cl_int state = CL_COMPLETE;
  std::chrono::steady_clock::time_point begin, end;
};

Memory* Of(cl_mem memory) { return reinterpret_cast<Memory*>(memory); }
FakeKernel* Of(cl_kernel kernel) { return reinterpret_cast<FakeKernel*>(kernel); }
Event* Of(cl_event event) { return reinterpret_cast<Event*>(event); }

bool& HasFaulted() {  // one state per process, as with the real driver
  static bool faulted = false;
  return faulted;
}
cl_int CodeNow() { return HasFaulted() ? CL_OUT_OF_RESOURCES : CL_SUCCESS; }

cl_int CheckPart(cl_mem memory, size_t offset, size_t bytes) {
  if (offset > Of(memory)->bytes || bytes > Of(memory)->bytes - offset) return CL_INVALID_VALUE;
  return CodeNow();
}

void Launch(const FakeKernel& kernel, size_t lanes) {
  if (kernel.name == "fault") {
    HasFaulted() = true;
  } else if (kernel.name == "tick") {
  } else if (kernel.name == "hone_reference") {  // device_agent/devices/lanes/reference_kernel.cc
    auto* const y = reinterpret_cast<uint32_t*>(kernel.arguments.at(0)->data());
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      uint32_t value = lane;
      for (uint32_t i = 0; i < 20000; ++i) value = value * 1664525U + (value >> 7) + i;
      y[lane] = value;
    }
  } else {  // the workload of tests/conformance/device
    const auto floats = [&](cl_uint i) { return reinterpret_cast<float*>(kernel.arguments.at(i)->data()); };
    for (size_t i = 0; i < std::min<size_t>(lanes, 1000); ++i) floats(2)[i] = 2 * floats(0)[i] + floats(1)[i];
  }
}

constexpr std::string_view kKernels[] = {"reference", "good", "fault", "tick", "hone_reference"};

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

cl_mem clCreateBuffer(cl_context, cl_mem_flags, size_t bytes, void*, cl_int* code) {
  *code = CodeNow();
  if (*code != CL_SUCCESS) return nullptr;
  return reinterpret_cast<cl_mem>(new Memory{std::make_shared<std::vector<char>>(bytes), 0, bytes});
}
cl_mem clCreateSubBuffer(cl_mem memory, cl_mem_flags, cl_buffer_create_type, const void* part, cl_int* code) {
  const auto& [origin, bytes] = *static_cast<const cl_buffer_region*>(part);
  *code = CheckPart(memory, origin, bytes);
  if (*code != CL_SUCCESS) return nullptr;
  return reinterpret_cast<cl_mem>(new Memory{Of(memory)->whole, Of(memory)->begin + origin, bytes});
}
cl_int clReleaseMemObject(cl_mem memory) {
  delete Of(memory);
  return CL_SUCCESS;
}
cl_kernel clCreateKernel(cl_program, const char* name, cl_int* code) {
  *code = std::find(std::begin(kKernels), std::end(kKernels), name) == std::end(kKernels) ? CL_INVALID_KERNEL_NAME
                                                                                          : CL_SUCCESS;
  return *code == CL_SUCCESS ? reinterpret_cast<cl_kernel>(new FakeKernel{name, {}}) : nullptr;
}
cl_int clReleaseKernel(cl_kernel kernel) {
  delete Of(kernel);
  return CL_SUCCESS;
}
cl_int clGetKernelWorkGroupInfo(cl_kernel, cl_device_id, cl_kernel_work_group_info what, size_t size, void* value,
                                size_t*) {
  std::memset(value, 0, size);
  if (what == CL_KERNEL_WORK_GROUP_SIZE) *static_cast<size_t*>(value) = 256;
  return CL_SUCCESS;
}
cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t, const void* value) {
  Of(kernel)->arguments[index] = Of(*static_cast<const cl_mem*>(value));
  return CL_SUCCESS;
}
cl_int clEnqueueWriteBuffer(cl_command_queue, cl_mem memory, cl_bool, size_t offset, size_t bytes, const void* from,
                            cl_uint, const cl_event*, cl_event*) {
  const cl_int code = CheckPart(memory, offset, bytes);
  if (code == CL_SUCCESS) std::memcpy(Of(memory)->data() + offset, from, bytes);
  return code;
}
cl_int clEnqueueReadBuffer(cl_command_queue, cl_mem memory, cl_bool, size_t offset, size_t bytes, void* to, cl_uint,
                           const cl_event*, cl_event*) {
  const cl_int code = CheckPart(memory, offset, bytes);
  if (code == CL_SUCCESS) std::memcpy(to, Of(memory)->data() + offset, bytes);
  return code;
}
cl_int clEnqueueFillBuffer(cl_command_queue, cl_mem memory, const void* value, size_t, size_t offset, size_t bytes,
                           cl_uint, const cl_event*, cl_event*) {
  const cl_int code = CheckPart(memory, offset, bytes);
  if (code == CL_SUCCESS) std::memset(Of(memory)->data() + offset, *static_cast<const unsigned char*>(value), bytes);
  return code;
}
cl_int clEnqueueCopyBuffer(cl_command_queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t bytes,
                           cl_uint, const cl_event*, cl_event*) {
  const cl_int code = std::min(CheckPart(from, from_offset, bytes), CheckPart(to, to_offset, bytes));
  if (code == CL_SUCCESS) std::memmove(Of(to)->data() + to_offset, Of(from)->data() + from_offset, bytes);
  return code;
}
cl_int clEnqueueNDRangeKernel(cl_command_queue, cl_kernel kernel, cl_uint, const size_t*, const size_t* lanes,
                              const size_t*, cl_uint, const cl_event*, cl_event* event) {
  if (CodeNow() != CL_SUCCESS) return CodeNow();
  const auto begin = std::chrono::steady_clock::now();
  Launch(*Of(kernel), *lanes);
  const cl_int state = HasFaulted() ? CL_OUT_OF_RESOURCES : CL_COMPLETE;
  const auto end = Of(kernel)->name == "tick" ? begin + kTick : std::chrono::steady_clock::now();
  if (event != nullptr) *event = reinterpret_cast<cl_event>(new Event{state, begin, end});
  return CL_SUCCESS;
}
cl_int clGetEventInfo(cl_event event, cl_event_info, size_t, void* value, size_t*) {
  *static_cast<cl_int*>(value) = Of(event)->state;
  return CL_SUCCESS;
}
cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t, void* value, size_t*) {
  const auto when = what == CL_PROFILING_COMMAND_START ? Of(event)->begin : Of(event)->end;
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch());
  *static_cast<cl_ulong*>(value) = kSince1970 + static_cast<cl_ulong>(nanoseconds.count());
  return CL_SUCCESS;
}
cl_int clReleaseEvent(cl_event event) {
  delete Of(event);
  return CL_SUCCESS;
}
cl_int clFlush(cl_command_queue) { return CL_SUCCESS; }
cl_int clFinish(cl_command_queue) { return CodeNow(); }

}  // extern "C"
// NOLINTEND
