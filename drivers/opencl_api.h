// SPDX-License-Identifier: Apache-2.0
// The functions of libOpenCL that the driver calls, looked up by name when the program runs, and the names of its error
// codes. Private to drivers/opencl*.
#ifndef HONE_DRIVERS_OPENCL_API_H_
#define HONE_DRIVERS_OPENCL_API_H_

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>
#include <string>

#include "drivers/error.h"

namespace hone::drivers::opencl {

// clang-format off
#define HONE_OPENCL_FUNCTIONS(X)                                                                                \
  X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo)                                 \
  X(clCreateContext) X(clReleaseContext) X(clCreateCommandQueue) X(clReleaseCommandQueue)                       \
  X(clCreateBuffer) X(clCreateSubBuffer) X(clReleaseMemObject)                                                  \
  X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(clBuildProgram) X(clReleaseProgram)               \
  X(clGetProgramInfo) X(clGetProgramBuildInfo)                                                                  \
  X(clCreateKernel) X(clReleaseKernel) X(clGetKernelWorkGroupInfo) X(clSetKernelArg)                            \
  X(clEnqueueWriteBuffer) X(clEnqueueReadBuffer) X(clEnqueueFillBuffer) X(clEnqueueCopyBuffer)                  \
  X(clEnqueueNDRangeKernel)                                                                                     \
  X(clGetEventInfo) X(clGetEventProfilingInfo) X(clReleaseEvent) X(clFlush) X(clFinish)
// clang-format on

struct Api {
#define HONE_OPENCL_POINTER(name) decltype(&::name) name = nullptr;
  HONE_OPENCL_FUNCTIONS(HONE_OPENCL_POINTER)
#undef HONE_OPENCL_POINTER
};

// kAbsent: the library is not there, or lacks a function.
Error LoadApi(const char* file, std::shared_ptr<const Api>* api);

// "what: CL_OUT_OF_RESOURCES (-5)", with the kind of trouble that the code stands for; ok for CL_SUCCESS.
Error Check(cl_int code, const std::string& what);

// The same, of a call that hands over what was launched, or waits for it. OpenCL has no code for a kernel that went
// where it must not; there, those that drivers use for it are kFault.
Error CheckDone(cl_int code, const std::string& what);

}  // namespace hone::drivers::opencl

#endif  // HONE_DRIVERS_OPENCL_API_H_
