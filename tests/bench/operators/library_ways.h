// SPDX-License-Identifier: Apache-2.0
// How libraries compute an operator: oneDNN and OpenBLAS, set up as their documentation advises for inference.
//
// Constants are packed beforehand, as a compiled model's are. A library has several ways where the layout of input and
// output is open; who compares takes those that begin and end in the model's layout. Threads are as many as the
// libraries' own environment variables say.
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
  bool writes_output;         // false: what it computes stays in a layout of its own
  std::function<void()> run;  // once, to the end
};

// What a library makes of an operator: the ways, and where they put the output, row-major in the model's layout.
struct LibraryOperator {
  std::vector<Way> ways;  // none: the library does not have it
  std::vector<int64_t> shape;
  std::vector<float> output;
};

// All take x, the input, which must outlive what they make; the operator need not.
//
// "onednn_plain": the primitive made for the model's layout. "onednn_reordered": for the layout that it likes best,
// with the reorders there and back. "onednn_own_layout": the same without the reorders; input and output are elsewhere.
// Internal: the library was asked for something that makes no sense.
absl::StatusOr<LibraryOperator> MakeOneDnn(const OnnxOperator& op, const std::vector<float>& x);
// "openblas": sgemm, for matrix products and for 1x1 convolutions, which are products.
LibraryOperator MakeOpenBlas(const OnnxOperator& op, const std::vector<float>& x);

}  // namespace hone::models

#endif  // HONE_TESTS_BENCH_OPERATORS_LIBRARY_WAYS_H_
