// SPDX-License-Identifier: Apache-2.0
// The OpenCL device that tests run on: the machine's first. Tests are skipped where there is none.
#ifndef HONE_TESTS_UNIT_DRIVERS_OPENCL_DEVICE_H_
#define HONE_TESTS_UNIT_DRIVERS_OPENCL_DEVICE_H_

#include <gtest/gtest.h>

#include <string>

#include "drivers/opencl.h"

namespace hone::tests {

// Null where the machine has no OpenCL device, with the reason. Opened once in a process. PoCL keeps its code in a
// folder that goes with the process, and offers groups of 256 lanes: it keeps what lives across a barrier on the stack,
// which its own limit of 4096 overflows.
const drivers::opencl::Device* OpenClDevice(std::string* reason);

// Says why and skips, or sets device().
class OpenClTest : public ::testing::Test {
 protected:
  void SetUp() override;
  const drivers::opencl::Device& device() const { return *device_; }

 private:
  const drivers::opencl::Device* device_ = nullptr;
};

// Far enough away for anything that ends.
drivers::opencl::Deadline Soon();

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_DRIVERS_OPENCL_DEVICE_H_
