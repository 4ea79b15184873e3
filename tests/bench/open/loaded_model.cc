// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/open/loaded_model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace hone {
namespace {

void Check(HoneStatus status) {
  if (status != HONE_OK) throw std::runtime_error(hone_error());
}

// The kind letter and the width of numpy's type, such as "i8" for int64.
std::string NumpyType(DLDataType type) {
  const std::map<int, std::string> kinds = {{kDLFloat, "f"}, {kDLInt, "i"}, {kDLUInt, "u"}, {kDLBool, "b"}};
  const auto kind = kinds.find(type.code);
  if (kind == kinds.end() || type.lanes != 1) throw std::runtime_error("a type that is not a plain number");
  return kind->second + std::to_string(type.bits / 8);
}

template <typename T>
std::vector<double> Converted(const DLTensor& view, size_t count) {
  std::vector<T> values(count);
  if (count > 0)
    std::memcpy(values.data(), static_cast<const std::byte*>(view.data) + view.byte_offset, count * sizeof(T));
  return std::vector<double>(values.begin(), values.end());
}

std::vector<double> Values(const DLTensor& view, size_t count) {
  const std::string type = NumpyType(view.dtype);
  if (type == "f4") return Converted<float>(view, count);
  if (type == "f8") return Converted<double>(view, count);
  if (type == "i8") return Converted<int64_t>(view, count);
  if (type == "i4") return Converted<int32_t>(view, count);
  if (type == "b1" || type == "u1") return Converted<uint8_t>(view, count);
  throw std::runtime_error("outputs of type " + type + " are not compared");
}

size_t CountOf(const std::vector<int64_t>& shape) {
  return static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
}

}  // namespace

LoadedModel::LoadedModel(const std::string& package, int threads) {
  const HoneLoadOptions options = {sizeof(HoneLoadOptions), threads, 0};
  Check(hone_load(package.c_str(), &options, &model_));
  inputs_.resize(hone_input_count(model_));
  uint64_t largest = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Check(hone_input(model_, i, &inputs_[i]));
    largest = std::max(largest, inputs_[i].bytes);
  }
  zeros_.resize(largest / sizeof(uint64_t) + 1);
}

size_t LoadedModel::InputNamed(const std::string& name) const {
  const auto found = std::ranges::find_if(inputs_, [&](const HonePort& port) { return port.name == name; });
  if (found == inputs_.end()) throw std::runtime_error("the package has no input " + name);
  return static_cast<size_t>(found - inputs_.begin());
}

void LoadedModel::Set(size_t input, const std::vector<int64_t>& shape, const void* data) {
  const DLTensor tensor = {const_cast<void*>(data),
                           {kDLCPU, 0},
                           static_cast<int32_t>(shape.size()),
                           inputs_[input].dtype,
                           const_cast<int64_t*>(shape.data()),
                           nullptr,
                           0};
  Check(hone_set_input(model_, input, &tensor));
}

void LoadedModel::SetInputs(const models::NpzArrays& arrays) {
  for (const auto& [name, array] : arrays) {
    const size_t input = InputNamed(name);
    if (array.descr.substr(1) != NumpyType(inputs_[input].dtype)) {
      throw std::runtime_error("array " + name + " has type " + array.descr + ", which is not the input's");
    }
    Set(input, array.shape, array.bytes.data());
  }
}

void LoadedModel::SetZeros(const Shapes& shapes) {
  for (const auto& [name, shape] : shapes) {
    const size_t input = InputNamed(name);
    Set(input, shape, zeros_.data());
  }
}

void LoadedModel::Run() { Check(hone_run(model_)); }

double LoadedModel::RunMs() {
  const auto start = std::chrono::steady_clock::now();
  Run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::vector<Output> LoadedModel::Outputs() const {
  std::vector<Output> outputs(hone_output_count(model_));
  for (size_t i = 0; i < outputs.size(); ++i) {
    HonePort port;
    DLTensor view;
    Check(hone_output(model_, i, &port));
    Check(hone_get_output(model_, i, &view));
    outputs[i].name = port.name;
    outputs[i].shape.assign(view.shape, view.shape + view.ndim);
    outputs[i].values = Values(view, CountOf(outputs[i].shape));
  }
  return outputs;
}

}  // namespace hone
