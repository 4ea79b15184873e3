// SPDX-License-Identifier: Apache-2.0
// A device for tests: a back end with its own memory, so that a copy that is missing shows as wrong data. It has the
// functions of the tiny package's OpenCL program and computes them in C++.
#ifndef HONE_TESTS_UNIT_RUNTIME_FAKE_DEVICE_H_
#define HONE_TESTS_UNIT_RUNTIME_FAKE_DEVICE_H_

#include <string>
#include <vector>

#include "deploy/runtime/backend.h"

namespace hone::tests {

// What the fake device has done, and how it shall fail.
struct FakeDevice {
  int uploads_of_constants = 0;
  int reads = 0, writes = 0, waits = 0;  // of tensors at borders; and how often the executor waited after an error
  std::vector<std::string> launches;     // functions, in order
  std::string failure;                   // text of the error of the next Run; empty: it succeeds
};

// A loader that runs OpenCL programs on `device`, which must outlive them, and is Incompatible for other programs.
runtime::BackendLoader LoaderFor(FakeDevice* device);

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_RUNTIME_FAKE_DEVICE_H_
