// SPDX-License-Identifier: Apache-2.0
// The OpenCL device for tests: the first of the machine. Tests are skipped if there is none.
#ifndef HONE_TESTS_UNIT_DRIVERS_OPENCL_DEVICE_H_
#define HONE_TESTS_UNIT_DRIVERS_OPENCL_DEVICE_H_

#include <gtest/gtest.h>

#include <string>

#include "drivers/opencl.h"

namespace hone::tests {

// The device, which is opened once in a process; null, with the reason, if the machine has none. PoCL is set up to
// cache its code in a folder that is deleted with the process, and to offer groups of 256 lanes. It keeps values that
// live across a barrier on the stack, which its default of 4096 lanes overflows.
const drivers::opencl::Device* OpenClDevice(std::string* reason);

// SetUp skips the test with the reason if there is no device.
class OpenClTest : public ::testing::Test {
 protected:
  void SetUp() override;
  const drivers::opencl::Device& device() const { return *device_; }

 private:
  const drivers::opencl::Device* device_ = nullptr;
};

// A deadline that every launch meets unless it never ends.
drivers::Deadline Soon();

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_DRIVERS_OPENCL_DEVICE_H_
