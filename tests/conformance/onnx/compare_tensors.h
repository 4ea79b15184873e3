// SPDX-License-Identifier: Apache-2.0
// Whether a tensor is what it should be, within the tolerance that its type allows.
#ifndef HONE_TESTS_CONFORMANCE_ONNX_COMPARE_TENSORS_H_
#define HONE_TESTS_CONFORMANCE_ONNX_COMPARE_TENSORS_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::conformance {

// OK, or what differs: type, shape, or the worst element. Integers and bools must be equal, floats within 1e-3 of the
// expected value plus 1e-5 of the largest one, or of 1 (half precision: 2e-3 and 1e-3). NaN equals NaN.
absl::Status CompareTensors(const graph::Constant& actual, const graph::Constant& expected);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_COMPARE_TENSORS_H_
