// SPDX-License-Identifier: Apache-2.0
// Implementations of an operator by libraries: oneDNN and OpenBLAS, set up as their documentation advises for
// inference.
//
// Constants are packed in advance, as in a compiled model. A library has several ways if the layouts of input and
// output are free. A fair comparison uses the ways that start and end in the model's layout. The libraries' own
// environment variables set the number of threads.
#ifndef HONE_TESTS_BENCH_OPERATORS_LIBRARY_WAYS_H_
#define HONE_TESTS_BENCH_OPERATORS_LIBRARY_WAYS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/operators/onnx_operator.h"

namespace hone::models {

struct Way {
  std::string name;
  bool writes_output;         // false: the result stays in a layout of the library's own
  std::function<void()> run;  // runs the operator once and waits for its end
};

// The ways in which a library computes an operator, and the output, which is row-major in the model's layout.
struct LibraryOperator {
  std::vector<Way> ways;  // empty: the library lacks the operator
  std::vector<int64_t> shape;
  std::vector<float> output;
};

// `x` is the input and must outlive the result; `op` need not.
//
// "onednn_plain": the primitive for the model's layout. "onednn_reordered": the primitive for the library's preferred
// layout, with reorders before and after it. "onednn_own_layout": the same without the reorders, on separate input and
// output. An Internal error means that the library was asked for something invalid.
absl::StatusOr<LibraryOperator> MakeOneDnn(const OnnxOperator& op, const std::vector<float>& x);
// "openblas": sgemm, for matrix products and for 1x1 convolutions, which are matrix products.
LibraryOperator MakeOpenBlas(const OnnxOperator& op, const std::vector<float>& x);

}  // namespace hone::models

#endif  // HONE_TESTS_BENCH_OPERATORS_LIBRARY_WAYS_H_
