// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/size_values.h"

#include <algorithm>
#include <string>

#include "base/element_type.h"
#include "base/size_steps.h"

namespace hone::runtime {

using package::SizeEntry;

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

SizeValues::SizeValues(const ProgramView& program)
    : program_(program),
      values_(program.sizes.size() + program.size_steps.size(), 0),
      given_(program.sizes.size(), 0),
      shapes_(program.shapes.begin(), program.shapes.end()),
      arguments_(program.size_arguments.size(), 0) {
  for (size_t i = 0; i < program.sizes.size(); ++i) values_[i] = program.sizes[i].min;
  Compute();
  least_shapes_ = shapes_;
  for (size_t i = 0; i < program.sizes.size(); ++i) values_[i] = program.sizes[i].max;
  Compute();
}

// An extent beyond the tensor's memory cannot occur for values in range. The limit makes it impossible for a manifest
// with wrong steps, too.
void SizeValues::Compute() {
  ++version_;
  ComputeAll(program_.size_steps, values_);
  for (size_t i = 0; i < program_.extents.size(); ++i) {
    if (program_.extents[i] == package::kFixedExtent) continue;
    shapes_[i] = std::clamp<int64_t>(values_[program_.extents[i]], 0, program_.shapes[i]);
  }
  for (size_t i = 0; i < arguments_.size(); ++i) arguments_[i] = values_[program_.size_arguments[i]];
}

std::span<const int64_t> SizeValues::Shape(uint32_t tensor) const {
  const package::TensorEntry& entry = program_.tensors[tensor];
  return std::span(shapes_).subspan(entry.shape, entry.rank);
}

uint64_t SizeValues::Bytes(uint32_t tensor) const {
  uint64_t bytes = SizeOf(program_.tensors[tensor].dtype);
  for (const int64_t extent : Shape(tensor)) bytes *= static_cast<uint64_t>(extent);
  return bytes;
}

int64_t SizeValues::MaxExtent(uint32_t tensor, size_t dimension) const {
  return program_.Shape(program_.tensors[tensor])[dimension];
}

int64_t SizeValues::MinExtent(uint32_t tensor, size_t dimension) const {
  return least_shapes_[program_.tensors[tensor].shape + dimension];
}

void SizeValues::ExchangeGiven() {
  std::swap_ranges(given_.begin(), given_.end(), values_.begin());
  Compute();
}

bool SizeValues::Takes(std::span<const std::vector<int64_t>> input_shapes) {
  for (size_t i = 0; i < given_.size(); ++i) {
    const SizeEntry& size = program_.sizes[i];
    given_[i] = values_[i];
    if (IsFromRun(i)) continue;
    const auto input = std::find(program_.inputs.begin(), program_.inputs.end(), size.tensor);
    const int64_t extent = input_shapes[static_cast<size_t>(input - program_.inputs.begin())][size.dimension];
    given_[i] = extent / size.step;
    if (extent % size.step != 0 || given_[i] < size.min || given_[i] > size.max) return false;
  }
  ExchangeGiven();
  bool takes = true;
  for (size_t k = 0; k < program_.inputs.size(); ++k) {
    takes = takes && std::ranges::equal(Shape(program_.inputs[k]), input_shapes[k]);
  }
  ExchangeGiven();
  return takes;
}

Fault SizeValues::SetSize(uint32_t size, int64_t value) {
  const SizeEntry& entry = program_.sizes[size];
  if (value < entry.min || value > entry.max) {
    return InvalidArgument("size '" + std::string(program_.Text(entry.name)) + "' became " + std::to_string(value) +
                           " in the run; the package has memory for " + std::to_string(entry.min) + " to " +
                           std::to_string(entry.max));
  }
  if (values_[size] == value) return {};
  values_[size] = value;
  Compute();
  return {};
}

Fault SizeValues::Set(std::span<const std::vector<int64_t>> input_shapes) {
  if (!IsOpen()) return {};
  for (size_t i = 0; i < given_.size(); ++i) {
    const SizeEntry& size = program_.sizes[i];
    given_[i] = values_[i];
    if (IsFromRun(i)) continue;
    const auto input = std::find(program_.inputs.begin(), program_.inputs.end(), size.tensor);
    const auto position = static_cast<size_t>(input - program_.inputs.begin());
    const int64_t extent = input_shapes[position][size.dimension];
    given_[i] = extent / size.step;
    if (extent % size.step != 0 || given_[i] < size.min || given_[i] > size.max) {
      return InvalidArgument("input '" + std::string(program_.Text(program_.tensors[size.tensor].name)) +
                             "': dimension " + std::to_string(size.dimension) + " ('" +
                             std::string(program_.Text(size.name)) + "') is " + std::to_string(extent) +
                             "; the package takes " + std::to_string(size.min * size.step) + " to " +
                             std::to_string(size.max * size.step) +
                             (size.step == 1 ? std::string() : " in steps of " + std::to_string(size.step)) +
                             "; compile the model for a larger range with --shape");
    }
  }
  const bool changes = !std::equal(given_.begin(), given_.end(), values_.begin());
  if (changes) ExchangeGiven();
  for (size_t k = 0; k < program_.inputs.size(); ++k) {
    const std::span<const int64_t> wanted = Shape(program_.inputs[k]);
    if (std::equal(wanted.begin(), wanted.end(), input_shapes[k].begin(), input_shapes[k].end())) continue;
    const std::string name(program_.Text(program_.tensors[program_.inputs[k]].name));
    const std::string text = "input '" + name + "' has shape " + ShapeText(input_shapes[k]) +
                             ", which does not fit the other inputs: they need " + ShapeText(wanted);
    if (changes) ExchangeGiven();
    return InvalidArgument(text);
  }
  return {};
}

}  // namespace hone::runtime
