// SPDX-License-Identifier: Apache-2.0
// Compares a tensor with the expected one, within the tolerance of its type.
#ifndef HONE_TESTS_CONFORMANCE_ONNX_COMPARE_TENSORS_H_
#define HONE_TESTS_CONFORMANCE_ONNX_COMPARE_TENSORS_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::conformance {

// Returns OK, or an error that names the type, the shape or the worst element that differs. Integers and bools must be
// equal. Floats may differ by 1e-3 of the expected value plus 1e-5 of max(largest value, 1); half precision by 2e-3 and
// 1e-3. NaN equals NaN. rounded: factors of products may have been rounded to the 10 bits of half precision (TF32), so
// that all floats have its tolerance.
absl::Status CompareTensors(const graph::Constant& actual, const graph::Constant& expected, bool rounded = false);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_COMPARE_TENSORS_H_
