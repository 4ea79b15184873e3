// SPDX-License-Identifier: Apache-2.0
// The target of tests that run on several kinds of devices: the environment variable HONE_TARGET, else this machine.
#ifndef HONE_TESTS_CONFORMANCE_ONNX_TARGET_OF_TEST_H_
#define HONE_TESTS_CONFORMANCE_ONNX_TARGET_OF_TEST_H_

#include <string>

#include "compiler/target/target.h"

namespace hone::conformance {

// Aborts if HONE_TARGET is no target.
target::Target TargetOfTest();

// The reason why this machine has no device of the target's kind; empty if it has one.
std::string MissingDevice(const target::Target& target);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_TARGET_OF_TEST_H_
