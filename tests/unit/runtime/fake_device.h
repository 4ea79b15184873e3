// SPDX-License-Identifier: Apache-2.0
// A device for tests: a back end with memory of its own, so that what is not copied is not there. It knows the
// functions of the tiny package's OpenCL program, and computes them as that says.
#ifndef HONE_TESTS_UNIT_RUNTIME_FAKE_DEVICE_H_
#define HONE_TESTS_UNIT_RUNTIME_FAKE_DEVICE_H_

#include <string>
#include <vector>

#include "deploy/runtime/backend.h"

namespace hone::tests {

// What the device has been asked to do.
struct FakeDevice {
  int uploads_of_constants = 0;
  std::vector<std::string> launches;  // functions, in order
  std::string failure;                // what the next Run fails with, if not empty
};

// A loader for OpenCL programs that run on `device`, which outlives them; Incompatible for others.
runtime::BackendLoader LoaderFor(FakeDevice* device);

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_RUNTIME_FAKE_DEVICE_H_
