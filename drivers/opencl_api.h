// SPDX-License-Identifier: Apache-2.0
// The functions of libOpenCL that the driver calls, which are looked up by name when the program runs, and the meaning
// of its error codes. Private to drivers/opencl*.
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

// Loads the library and looks up its functions. kAbsent: the library is missing or lacks a function.
Error LoadApi(const char* file, std::shared_ptr<const Api>* api);

// The error for a code: "what: CL_OUT_OF_RESOURCES (-5)" with the kind of the code; ok for CL_SUCCESS.
Error Check(cl_int code, const std::string& what);

// Check for a call that submits launches or waits for them. OpenCL has no code for a kernel that failed while it ran,
// for example by an illegal address. The codes that drivers return instead are kFault here.
Error CheckDone(cl_int code, const std::string& what);

}  // namespace hone::drivers::opencl

#endif  // HONE_DRIVERS_OPENCL_API_H_
