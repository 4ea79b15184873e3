// SPDX-License-Identifier: Apache-2.0
// One operator of the table of decompositions, replaced by ONNX's operators and run by the interpreter.
//
// Not here: the conversion of names and files, which the importer does. Start with ExpectDecomposed.
#ifndef HONE_TESTS_UNIT_DECOMPOSE_DECOMPOSE_CASE_H_
#define HONE_TESTS_UNIT_DECOMPOSE_DECOMPOSE_CASE_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {

// The case's domain is com.microsoft unless it states one. Inputs are constants of the model if they are in
// `constants`; the others are known only when the model runs. `unused` are outputs that nothing reads.
struct DecomposeOptions {
  std::set<size_t> constants = {};
  std::set<size_t> unused = {};
};

// Returns the outputs; those of unused outputs are empty.
absl::StatusOr<std::vector<Constant>> RunDecomposed(const OpCase& test_case, const DecomposeOptions& options = {});
// Expects output number `output` to have this shape and these numbers, within `tolerance` (absolute, and relative for
// numbers above 1).
void ExpectDecomposed(const OpCase& test_case, const Shape& shape, const std::vector<double>& numbers,
                      const DecomposeOptions& options = {}, size_t output = 0, double tolerance = 1e-5);
// Expects a result to have this shape and these numbers.
void ExpectTensor(const Constant& result, const Shape& shape, const std::vector<double>& numbers,
                  double tolerance = 1e-5);
// Expects the outputs that ONNX Runtime computes for the case, which are in expected_outputs.txt under this name, in
// both forms: all inputs constant, and none but options.constants. With the environment variable
// HONE_WRITE_DECOMPOSE_CASES, the case is also written to that folder as NAME.onnx;
// tests/bench/peers/constant_models.js makes expected_outputs.txt of these files.
void ExpectAsOnnxRuntime(const std::string& name, const OpCase& test_case, const DecomposeOptions& options = {},
                         double tolerance = 1e-5);
// Random f32 numbers in [-1, 1), the same on every machine.
Constant RandomTensor(Shape shape, uint64_t seed);
Constant Int32s(Shape shape, std::vector<double> numbers);

// Returns the operators that take the node's place, in order.
std::vector<std::string> DecomposedOps(const OpCase& test_case, const DecomposeOptions& options = {});

}  // namespace hone::graph

#endif  // HONE_TESTS_UNIT_DECOMPOSE_DECOMPOSE_CASE_H_
