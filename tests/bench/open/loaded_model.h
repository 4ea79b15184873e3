// SPDX-License-Identifier: Apache-2.0
// A package that is loaded with the C interface, its inputs given by name, its outputs read as doubles.
//
// Failures of the runtime are exceptions, because a benchmark ends with them.
#ifndef HONE_TESTS_BENCH_OPEN_LOADED_MODEL_H_
#define HONE_TESTS_BENCH_OPEN_LOADED_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "deploy/runtime/hone.h"
#include "tests/models/npz_file.h"

namespace hone {

// The extents of each input by its name.
using Shapes = std::map<std::string, std::vector<int64_t>>;

struct Output {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<double> values;
};

class LoadedModel {
 public:
  LoadedModel(const std::string& package, int threads);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;
  ~LoadedModel() { hone_free(model_); }

  // Copies the arrays into the inputs of those names. An array whose type is not the input's is an error.
  void SetInputs(const models::NpzArrays& arrays);
  // Sets inputs to zeros. Allocates nothing if the shapes are within those of an earlier call.
  void SetZeros(const Shapes& shapes);

  void Run();
  double RunMs();  // runs and returns the milliseconds
  std::vector<Output> Outputs() const;

 private:
  size_t InputNamed(const std::string& name) const;
  void Set(size_t input, const std::vector<int64_t>& shape, const void* data);

  HoneModel* model_ = nullptr;
  std::vector<HonePort> inputs_;
  std::vector<uint64_t> zeros_;  // memory for the largest input
};

}  // namespace hone

#endif  // HONE_TESTS_BENCH_OPEN_LOADED_MODEL_H_
