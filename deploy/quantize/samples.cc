// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::quantize {
namespace {

namespace fs = std::filesystem;
using graph::RawDimension;
using graph::RawInput;

// "f32 [?, 3, 224, 224]"
std::string Describe(const RawInput& input) {
  std::vector<std::string> extents;
  for (const RawDimension& dimension : *input.shape) {
    extents.push_back(dimension.extent.has_value() ? fmt::format("{}", *dimension.extent)
                      : !dimension.symbol.empty()  ? dimension.symbol
                                                   : "?");
  }
  return fmt::format("{} [{}]", Name(input.dtype), fmt::join(extents, ", "));
}

bool HasOpenDimension(const RawInput& input) {
  return std::ranges::any_of(*input.shape, [](const RawDimension& d) { return !d.extent.has_value(); });
}

// Checks type and shape; the first dimension may be a multiple of the input's.
absl::Status CheckHeader(const RawInput& input, const run::NpyHeader& header) {
  const std::vector<RawDimension>& dims = *input.shape;
  bool fits = header.dtype == input.dtype && header.shape.size() == dims.size();
  for (size_t d = 0; fits && d < dims.size(); ++d) {
    const int64_t extent = header.shape[d], wanted = dims[d].extent.value_or(extent);
    fits = extent > 0 && (d == 0 ? wanted > 0 && extent % wanted == 0 : extent == wanted);
  }
  if (fits) return absl::OkStatus();
  std::string text =
      fmt::format("it is {} {}, the model wants {}", Name(header.dtype), run::ShapeText(header.shape), Describe(input));
  if (header.dtype == DType::kFloat64 && input.dtype == DType::kFloat32) text += "; convert it with .astype('float32')";
  if (!dims.empty()) text += ", or several of these along the first dimension";
  return absl::FailedPreconditionError(text);
}

template <typename T>
absl::Status CheckFinite(const run::Array& array) {
  const auto* elements = reinterpret_cast<const T*>(array.data.data());
  const size_t count = array.data.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(elements[i])) {
      return absl::FailedPreconditionError(
          fmt::format("element {} is {}; ranges cannot be measured with it", i, elements[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckElements(const run::Array& array) {
  if (array.dtype == DType::kFloat32) return CheckFinite<float>(array);
  if (array.dtype == DType::kFloat64) return CheckFinite<double>(array);
  return absl::OkStatus();
}

bool Varies(const run::Array& array) {
  const auto bytes = static_cast<size_t>(SizeOf(array.dtype));
  for (size_t at = bytes; at < array.data.size(); at += bytes) {
    if (std::memcmp(array.data.data(), array.data.data() + at, bytes) != 0) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SampleFiles(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".npz") files.push_back(entry.path().string());
  }
  if (error) return absl::NotFoundError(fmt::format("folder {}: {}", path, error.message()));
  if (files.empty()) {
    return absl::NotFoundError(
        fmt::format("folder {} has no .npz files; save each sample with numpy.savez(FILE, INPUT=ARRAY, ...)", path));
  }
  std::ranges::sort(files);
  return files;
}

namespace {

// The number of samples that the arrays of a file have: how many times the first dimension of the model's. Open first
// dimensions count if all inputs have one. Nullopt: the inputs disagree.
std::optional<int64_t> CountSamples(const std::vector<RawInput>& inputs,
                                    const std::map<std::string, std::vector<int64_t>>& shapes) {
  const auto open = [](const RawInput& input) { return !input.shape->empty() && !input.shape->front().extent; };
  const bool all_open = std::ranges::all_of(inputs, open);
  int64_t samples = 1;
  for (const RawInput& input : inputs) {
    const auto shape = shapes.find(input.name);
    if (input.shape->empty() || shape == shapes.end() || (open(input) && !all_open)) continue;
    const int64_t count = shape->second.front() / input.shape->front().extent.value_or(1);
    if (count == 1) continue;  // all samples share it
    if (samples != 1 && count != samples) return std::nullopt;
    samples = count;
  }
  return samples;
}

// Extends the range by a size. Its step divides all sizes: a model may ask for multiples of 32.
void Include(graph::DimRange& range, const graph::DimRange& other) {
  const bool same = range.min == range.max && other.min == other.max && range.min == other.min;
  const auto divisor = [](const graph::DimRange& r) { return r.min == r.max ? r.min : r.step; };
  const int64_t step = same ? 1 : std::max<int64_t>(1, std::gcd(divisor(range), divisor(other)));
  range = {std::min(range.min, other.min), std::max(range.max, other.max), step};
}

// Whether each of the file's samples has a part of the array, not all of it.
bool IsSplit(const RawInput& input, const std::vector<int64_t>& shape, int64_t samples) {
  return samples > 1 && !shape.empty() && shape.front() == input.shape->front().extent.value_or(1) * samples;
}

}  // namespace

std::map<std::string, std::vector<graph::DimRange>> OpenShapesOf(const std::vector<const Samples*>& all) {
  std::map<std::string, std::vector<graph::DimRange>> shapes;
  for (const Samples* samples : all) {
    for (const auto& [input, ranges] : samples->open_shapes()) {
      const auto [known, added] = shapes.emplace(input, ranges);
      for (size_t d = 0; !added && d < ranges.size(); ++d) Include(known->second[d], ranges[d]);
    }
  }
  return shapes;
}

absl::StatusOr<Samples> Samples::Open(const std::string& path, const std::vector<RawInput>& inputs) {
  Samples samples;
  for (const RawInput& input : inputs) {
    HONE_RETURN_IF_ERROR(Annotate(input.type_error, fmt::format("input '{}'", input.name)));
    if (!input.shape.has_value()) {
      return absl::InvalidArgumentError(fmt::format("the model does not state the shape of input '{}'", input.name));
    }
    samples.inputs_.push_back(input);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> files, SampleFiles(path));
  for (const std::string& file : files) {
    HONE_ASSIGN_OR_RETURN(File checked, samples.Check(file));
    samples.count_ += checked.samples;
    samples.files_.push_back(std::move(checked));
  }
  if (!samples.varies_ && !inputs.empty()) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: every array has one value in all its elements; ranges can only be measured with real data", path));
  }
  return samples;
}

absl::StatusOr<Samples::File> Samples::Check(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const run::NpzReader reader, run::NpzReader::Open(path));
  const std::vector<std::string> names = reader.names();
  std::vector<std::string> wanted;
  for (const RawInput& input : inputs_) wanted.push_back(input.name);
  for (const std::string& name : names) {
    if (std::ranges::find(wanted, name) != wanted.end()) continue;
    return absl::FailedPreconditionError(fmt::format("{}: array '{}' is no input of the model; its inputs are '{}'",
                                                     path, name, fmt::join(wanted, "', '")));
  }
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const RawInput& input : inputs_) {
    if (std::ranges::find(names, input.name) == names.end()) {
      return absl::FailedPreconditionError(fmt::format("{}: there is no array for input '{}'", path, input.name));
    }
    HONE_ASSIGN_OR_RETURN(const run::Array array, reader.Read(input.name, [&](const run::NpyHeader& header) {
      return CheckHeader(input, header);
    }));
    HONE_RETURN_IF_ERROR(Annotate(CheckElements(array), fmt::format("{}: array '{}'", path, input.name)));
    std::vector<uint8_t> first(
        array.data.begin(), array.data.begin() + std::min<std::ptrdiff_t>(SizeOf(array.dtype), std::ssize(array.data)));
    varies_ |= Varies(array) || first_elements_.emplace(input.name, first).first->second != first;
    shapes.emplace(input.name, array.shape);
  }
  const std::optional<int64_t> count = CountSamples(inputs_, shapes);
  if (!count.has_value()) {
    return absl::FailedPreconditionError(
        fmt::format("{}: the arrays do not have the same number of samples along their first dimensions", path));
  }
  for (const RawInput& input : inputs_) {
    std::vector<int64_t>& shape = shapes.at(input.name);
    if (IsSplit(input, shape, *count)) shape.front() /= *count;
    NoteShape(input, shape);
  }
  return File{path, static_cast<size_t>(*count)};
}

void Samples::NoteShape(const RawInput& input, const std::vector<int64_t>& shape) {
  if (!HasOpenDimension(input)) return;
  std::vector<graph::DimRange>& ranges = open_shapes_[input.name];
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d == ranges.size()) ranges.emplace_back(shape[d]);
    Include(ranges[d], shape[d]);
  }
}

absl::Status Samples::ForEach(const Use& use) const {
  size_t number = 0;
  for (const File& file : files_) {
    HONE_ASSIGN_OR_RETURN(const run::NpzReader reader, run::NpzReader::Open(file.path));
    std::vector<run::Array> arrays;
    for (const RawInput& input : inputs_) {
      HONE_ASSIGN_OR_RETURN(run::Array array,
                            reader.Read(input.name, [](const run::NpyHeader&) { return absl::OkStatus(); }));
      arrays.push_back(std::move(array));
    }
    for (size_t s = 0; s < file.samples; ++s) {
      std::vector<run::ArrayView> views;
      std::vector<std::vector<int64_t>> shapes;
      for (const run::Array& array : arrays) shapes.push_back(array.shape);
      for (size_t i = 0; i < arrays.size(); ++i) {
        std::span<const uint8_t> data = arrays[i].data;
        if (IsSplit(inputs_[i], shapes[i], static_cast<int64_t>(file.samples))) {
          data = data.subspan(s * (data.size() / file.samples), data.size() / file.samples);
          shapes[i].front() /= static_cast<int64_t>(file.samples);
        }
        views.push_back({inputs_[i].name, arrays[i].dtype, shapes[i], data});
      }
      HONE_RETURN_IF_ERROR(use(number++, views));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::quantize
