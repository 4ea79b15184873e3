// SPDX-License-Identifier: Apache-2.0
// A loaded model that frees itself, and DLPack tensors over vectors, for tests of the C interface.
#ifndef HONE_TESTS_UNIT_RUNTIME_LOADED_MODEL_H_
#define HONE_TESTS_UNIT_RUNTIME_LOADED_MODEL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "deploy/runtime/hone.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::tests {

class LoadedModel {
 public:
  explicit LoadedModel(const std::string& path, int threads = 2) {
    const HoneLoadOptions options = {sizeof(HoneLoadOptions), threads, 0};
    status_ = hone_load(path.c_str(), &options, &model_);
    EXPECT_EQ(status_, HONE_OK) << hone_error();
  }
  LoadedModel(LoadedModel&& other) noexcept : model_(std::exchange(other.model_, nullptr)) {}
  LoadedModel& operator=(LoadedModel&&) = delete;
  ~LoadedModel() { hone_free(model_); }
  operator HoneModel*() const { return model_; }  // NOLINT(google-explicit-constructor): as in C

 private:
  HoneModel* model_ = nullptr;
  HoneStatus status_;
};

// A row-major f32 tensor over memory that outlives it.
class FloatTensor {
 public:
  FloatTensor(const float* data, std::vector<int64_t> shape) : shape_(std::move(shape)) {
    tensor.data = const_cast<float*>(data);
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(shape_.size());
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape_.data();
    tensor.strides = nullptr;
    tensor.byte_offset = 0;
  }
  DLTensor tensor;

 private:
  std::vector<int64_t> shape_;
};

inline std::vector<float> Floats(const DLTensor& view) {
  int64_t count = 1;
  for (int32_t i = 0; i < view.ndim; ++i) count *= view.shape[i];
  const float* data = static_cast<const float*>(view.data);
  return {data, data + count};
}

inline std::vector<float> OutputOf(HoneModel* model, size_t index) {
  DLTensor view;
  EXPECT_EQ(hone_get_output(model, index, &view), HONE_OK) << hone_error();
  return Floats(view);
}

// What hone_run_watched shows of a run.
struct WatchedValue {
  std::string name;
  size_t call;
  std::vector<float> elements;
  std::vector<uint32_t> axes;
};
inline std::vector<WatchedValue> ValuesOfRun(HoneModel* model) {
  std::vector<WatchedValue> values;
  const HoneWatch watch = [](void* context, const HoneValue* value) {
    static_cast<std::vector<WatchedValue>*>(context)->push_back(
        {value->name, value->call, Floats(value->tensor), {value->axes, value->axes + value->axis_count}});
  };
  EXPECT_EQ(hone_run_watched(model, watch, &values), HONE_OK) << hone_error();
  return values;
}

// Lets the sum of the tiny package hold two values, and y one.
inline void NameValues(package::PackageProgram& program) {
  program.values = {{"sum", 2, {1, 0}}, {"sum_again", 2, {}}, {"y", 3, {}}};
}
inline void ExpectNamedValues(const std::vector<WatchedValue>& values) {
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0].name, "sum");
  EXPECT_EQ(values[0].call, 0u);
  EXPECT_EQ(values[0].elements, TinyOutput(1));
  EXPECT_EQ(values[0].axes, (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(values[1].name, "sum_again");
  EXPECT_EQ(values[1].elements, TinyOutput(1));
  EXPECT_EQ(values[1].axes, std::vector<uint32_t>());
  EXPECT_EQ(values[2].name, "y");
  EXPECT_EQ(values[2].call, 1u);
  EXPECT_EQ(values[2].elements, TinyOutput());
}

// Checks that a run of the tiny package sees what the caller has written into a bound input.
inline void ExpectWritesAreSeen(HoneModel* model, const std::vector<float>& input) {
  alignas(64) float x[kRows * kColumns], y[kRows * kColumns];
  std::copy(input.begin(), input.end(), x);
  const FloatTensor bound_x(x, {kRows, kColumns}), bound_y(y, {kRows, kColumns});
  ASSERT_EQ(hone_bind_input(model, 0, &bound_x.tensor), HONE_OK);
  ASSERT_EQ(hone_bind_output(model, 0, &bound_y.tensor), HONE_OK);
  for (int round = 0; round < 3; ++round) {
    x[3] += 10;
    ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
    EXPECT_EQ(y[3], 2 * (x[3] + kBias[3]));
  }
}

// Runs a tiny package with open rows (OpenRows) at so many of them. y is written to memory of the test, which must stay
// as it is behind these rows.
inline void ExpectRowsRun(HoneModel* model, int64_t rows, const std::vector<float>& whole_y) {
  const std::vector<float> x = TinyInput();
  const FloatTensor input(x.data(), {rows, kColumns});
  alignas(64) float y[kRows * kColumns];
  std::fill(std::begin(y), std::end(y), -99.0F);
  const FloatTensor bound_y(y, {kRows, kColumns});
  ASSERT_EQ(hone_set_input(model, 0, &input.tensor), HONE_OK) << hone_error();
  ASSERT_EQ(hone_bind_output(model, 0, &bound_y.tensor), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    ASSERT_EQ(y[i], i < rows * kColumns ? whole_y[static_cast<size_t>(i)] : -99) << i << " of " << rows << " rows";
  }
  const std::vector<float> rows_of_x(x.begin(), x.begin() + rows * kColumns);
  EXPECT_EQ(OutputOf(model, 1), rows_of_x);
  EXPECT_EQ(OutputOf(model, 2), std::vector<float>(kBias.begin(), kBias.end()));
}

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_RUNTIME_LOADED_MODEL_H_
