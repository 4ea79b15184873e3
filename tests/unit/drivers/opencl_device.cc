// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/drivers/opencl_device.h"

#include <cstdio>
#include <cstdlib>

#include "base/temporary_folder.h"

namespace hone::tests {

using drivers::Error;
using drivers::opencl::Device;
using drivers::opencl::Library;

const Device* OpenClDevice(std::string* reason) {
  struct Opened {
    TemporaryFolder cache = TemporaryFolder::Create().value();
    Device device;
    Error error;

    Opened() {
      setenv("POCL_CACHE_DIR", cache.path().c_str(), 1);
      setenv("POCL_MAX_WORK_GROUP_SIZE", "256", 1);
      Library library;
      error = Library::Load(&library);
      if (error.ok()) error = library.Open("", &device);
    }
  };
  static Opened opened;
  *reason = opened.error.text;
  return opened.error.ok() ? &opened.device : nullptr;
}

void OpenClTest::SetUp() {
  std::string reason;
  device_ = OpenClDevice(&reason);
  if (device_ != nullptr) return;
  std::printf("[SKIP] %s\n", reason.c_str());
  GTEST_SKIP() << reason;
}

drivers::Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::minutes(5); }

}  // namespace hone::tests
