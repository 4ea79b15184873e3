// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/onnx/target_of_test.h"

#include <cstdlib>

#include "base/status.h"
#include "compiler/target/host.h"
#include "drivers/lane_drivers.h"

namespace hone::conformance {

target::Target TargetOfTest() {
  const char* text = std::getenv("HONE_TARGET");
  if (text == nullptr) return target::HostCpu();
  absl::StatusOr<target::Target> target = target::ParseTarget(text);
  HONE_CHECK(target.ok());
  return *std::move(target);
}

std::string MissingDevice(const target::Target& target) {
  const auto open = [](auto driver) {
    typename decltype(driver)::Library library;
    typename decltype(driver)::Device device;
    drivers::Error error = decltype(driver)::Library::Load(&library);
    if (error.ok()) error = library.Open("", &device);
    return error.text;
  };
  switch (target.kind) {
    case target::Kind::kCpu:
      return "";
    case target::Kind::kOpenCl:
      return open(drivers::OpenClDriver());
    case target::Kind::kCuda:
      return open(drivers::CudaDriver());
  }
  return "";
}

}  // namespace hone::conformance
