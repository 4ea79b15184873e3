// SPDX-License-Identifier: Apache-2.0
#include "device_agent/doctor/driver_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "drivers/lane_drivers.h"

namespace hone::agent {
namespace {

std::string InWords(const drivers::cuda::DeviceInfo& info) {
  return fmt::format("{} ({}, CUDA {})", info.name, info.architecture, info.driver_version);
}
std::string InWords(const drivers::opencl::DeviceInfo& info) {
  return fmt::format("{} ({}, {})", info.name, info.platform, info.driver_version);
}

template <typename Driver>
Finding CheckDriver(const char* file) {
  typename Driver::Library library;
  std::vector<typename Driver::DeviceInfo> devices;
  drivers::Error error = Driver::Library::Load(&library, file);
  if (error.ok()) error = library.ListDevices(&devices);
  if (!error.ok()) return {Driver::kTarget, Verdict::kNote, error.text, ""};
  std::vector<std::string> list;
  for (const auto& info : devices) list.push_back(InWords(info));
  return {Driver::kTarget, Verdict::kGood, fmt::format("{}", fmt::join(list, ", ")), ""};
}

}  // namespace

Finding CheckCuda(const char* file) { return CheckDriver<drivers::CudaDriver>(file); }
Finding CheckOpenCl(const char* file) { return CheckDriver<drivers::OpenClDriver>(file); }

std::vector<Finding> CheckDrivers() { return {CheckCuda("libcuda.so.1"), CheckOpenCl("libOpenCL.so.1")}; }

}  // namespace hone::agent
