// SPDX-License-Identifier: Apache-2.0
// The kinds of devices that the suite runs on. A new kind needs its kernels here, in its own language, and a line in
// Subjects().
#ifndef HONE_TESTS_CONFORMANCE_DEVICE_SUBJECTS_H_
#define HONE_TESTS_CONFORMANCE_DEVICE_SUBJECTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "device_agent/devices/device.h"

namespace hone::agent {

struct Subject {
  std::string name;  // part of the test's name
  std::function<std::unique_ptr<Device>()> make;
  // Returns one artifact with all kernels, which are called as HandMadeInterface says.
  std::function<std::string()> artifact;
  int64_t groups = 0, lanes = 0;  // launch grid; 0, 0: kernels are host functions (HoneKernels)
  bool kernels_crash = true;      // a bad address ends the process

  friend void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }
};

std::vector<Subject> Subjects();

}  // namespace hone::agent

#endif  // HONE_TESTS_CONFORMANCE_DEVICE_SUBJECTS_H_
