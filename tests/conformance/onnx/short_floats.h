// SPDX-License-Identifier: Apache-2.0
// Conformance cases in f16 or bf16: ONNX's own cases of one node, with the short type in place of f32, or of f64 in
// cases without f32.
//
// The expected outputs are those that the interpreter computes in f32 from the rounded inputs, rounded once. Not here:
// whether f32 itself is right, which the cases as they are show. Start with RunShortCase.
#ifndef HONE_TESTS_CONFORMANCE_ONNX_SHORT_FLOATS_H_
#define HONE_TESTS_CONFORMANCE_ONNX_SHORT_FLOATS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/type.h"
#include "tests/conformance/onnx/execution.h"

namespace hone::conformance {

// The cases of these whose model is one node of ai.onnx with a float input or output. Cases of functions that are
// written out (their names end with _expanded) are left out: a function rounds between its nodes.
absl::StatusOr<std::vector<std::string>> OneNodeFloatCases(const std::string& data, std::vector<std::string> names);

// Runs the case in `dtype`, f16 or bf16. Inputs that ONNX defines as f32 only, such as the scales of Resize, stay f32.
// OK if each float differs by at most ShortUlpsMax of the operator, or 1e-6 of the largest element, from the expected
// one, and all else is equal.
absl::Status RunShortCase(const std::string& data, const std::string& name, const Execution& execution,
                          ir::DType dtype);

// The tolerance of an operator in units in the last place: 1 if it rounds once, more for operators that ONNX defines by
// several roundings.
double ShortUlpsMax(const std::string& op);

// The operators of the cases, which must be of one node each.
absl::StatusOr<std::set<std::string>> OperatorsOf(const std::string& data, const std::vector<std::string>& names);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_SHORT_FLOATS_H_
