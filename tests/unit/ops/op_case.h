// SPDX-License-Identifier: Apache-2.0
// One operator on constant inputs, run by the interpreter.
//
// Models and files are elsewhere; the conformance cases are in tests/conformance. Start with OpCase and RunCase.
#ifndef HONE_TESTS_UNIT_OPS_OP_CASE_H_
#define HONE_TESTS_UNIT_OPS_OP_CASE_H_

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

using Shape = std::vector<int64_t>;

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A tensor of any type; the numbers are converted to that type.
Constant Tensor(ir::DType dtype, Shape shape, std::vector<double> numbers);
Constant Floats(Shape shape, std::vector<double> numbers);
Constant Ints(Shape shape, std::vector<double> numbers);  // int64
Constant Bools(Shape shape, std::vector<double> numbers);
// The f32 numbers 0, 1, 2, ...
Constant Counting(Shape shape);
Constant Absent();  // stands for an optional input that is left out
std::vector<double> Numbers(const Constant& tensor);

Attribute Int(int64_t value);
Attribute IntList(Shape values);

struct OpCase {
  std::string op;
  std::vector<Constant> inputs;
  std::map<std::string, Attribute> attributes = {};
  int opset = 17;
  int outputs = 1;
  std::string domain = "";
};

// Verifies the emitted stages and returns the outputs that the interpreter computes from them.
absl::StatusOr<std::vector<Constant>> RunCase(const OpCase& test_case);

// Expects output number `output` to have this shape and these numbers, to a relative 1e-5.
void ExpectOutput(const OpCase& test_case, const Shape& shape, const std::vector<double>& numbers, size_t output = 0);
// Expects the first output to have these numbers, whatever its shape.
void ExpectNumbers(const OpCase& test_case, const std::vector<double>& numbers);

}  // namespace hone::graph

#endif  // HONE_TESTS_UNIT_OPS_OP_CASE_H_
