// SPDX-License-Identifier: Apache-2.0
#include <cblas.h>

#include <algorithm>
#include <memory>

#include "tests/bench/operators/library_ways.h"

namespace hone::models {
namespace {

bool AreAll(const std::vector<int64_t>& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}

// True for a window of one element with stride one: each pixel is independent.
bool IsPointwise(const OnnxOperator& op) {
  return op.node.op_type() == "Conv" && AreAll(op.Ints("kernel_shape", {}), 1) && AreAll(op.Ints("strides", {}), 1) &&
         AreAll(op.Ints("pads", {}), 0) && op.Int("group", 1) == 1;
}

}  // namespace

LibraryOperator MakeOpenBlas(const OnnxOperator& op, const std::vector<float>& x) {
  LibraryOperator made;
  if (IsPointwise(op)) {
    made.shape = op.shape;
    made.shape[1] = op.constants[0].shape[0];
    made.output.resize(static_cast<size_t>(ElementsOf(made.shape)));
    const auto out = static_cast<int>(made.shape[1]), in = static_cast<int>(op.shape[1]);
    const auto pixels = static_cast<int>(ElementsOf(op.shape) / in);
    made.ways.push_back(
        {"openblas", true,
         [=, weights = op.constants[0].values, bias = op.constants[1].values, x = x.data(), y = made.output.data()] {
           for (int o = 0; o < out; ++o) std::fill_n(y + int64_t{o} * pixels, pixels, bias[o]);
           cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, out, pixels, in, 1, weights.data(), in, x, pixels, 1,
                       y, pixels);
         }});
  } else if (op.node.op_type() == "MatMul" && op.by_itself_transposed) {
    const auto rows = static_cast<int>(op.shape[op.shape.size() - 2]), n = static_cast<int>(op.shape.back());
    made.shape = op.shape;
    made.shape.back() = rows;
    made.output.resize(static_cast<size_t>(ElementsOf(made.shape)));
    const int64_t batch = ElementsOf(op.shape) / rows / n;
    made.ways.push_back({"openblas", true, [=, x = x.data(), y = made.output.data()] {
                           for (int64_t b = 0; b < batch; ++b) {
                             const float* const of_batch = x + b * rows * n;
                             cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, rows, n, 1, of_batch, n,
                                         of_batch, n, 0, y + b * rows * rows, rows);
                           }
                         }});
  } else if (op.node.op_type() == "MatMul") {
    const auto in = static_cast<int>(op.shape.back()), out = static_cast<int>(op.constants[0].shape[1]);
    const auto rows = static_cast<int>(ElementsOf(op.shape) / in);
    made.shape = op.shape;
    made.shape.back() = out;
    made.output.resize(static_cast<size_t>(ElementsOf(made.shape)));
    made.ways.push_back({"openblas", true, [=, weights = op.constants[0].values, x = x.data(), y = made.output.data()] {
                           cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, out, in, 1, x, in,
                                       weights.data(), out, 0, y, out);
                         }});
  }
  return made;
}

}  // namespace hone::models
