// SPDX-License-Identifier: Apache-2.0
#include "deploy/run/given_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <vector>

#include "base/status.h"
#include "deploy/run/npz.h"
#include "deploy/runtime/dtype.h"

namespace hone::run {
namespace {

std::string Describe(package::DType dtype, std::span<const int64_t> shape) {
  return fmt::format("{} {}", package::Name(dtype), ShapeText(shape));
}

// Checks that every input without a default has an array and every array belongs to an input.
absl::Status CheckNames(const LoadedPackage& package, const std::vector<std::string>& names, const std::string& path) {
  std::vector<std::string> wanted, missing, extra;
  for (size_t i = 0; i < package.inputs().size(); ++i) {
    const std::string& name = wanted.emplace_back(package.inputs()[i].name);
    const bool given = std::find(names.begin(), names.end(), name) != names.end();
    if (!given && hone_input_has_default(package.model(), i) == 0) missing.push_back(name);
  }
  for (const std::string& name : names) {
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) extra.push_back(name);
  }
  if (missing.empty() && extra.empty()) return absl::OkStatus();
  std::string text = fmt::format("the arrays in '{}' are not the model's inputs:", path);
  if (!missing.empty()) text += fmt::format(" missing '{}';", fmt::join(missing, "', '"));
  if (!extra.empty()) text += fmt::format(" unknown '{}';", fmt::join(extra, "', '"));
  return absl::FailedPreconditionError(fmt::format("{} the inputs are '{}'", text, fmt::join(wanted, "', '")));
}

// The shapes that an input may have: "[1..4, 128]".
std::string RangeText(std::span<const int64_t> min, std::span<const int64_t> max) {
  std::vector<std::string> dimensions;
  for (size_t d = 0; d < max.size(); ++d) {
    dimensions.push_back(min[d] == max[d] ? fmt::format("{}", max[d]) : fmt::format("{}..{}", min[d], max[d]));
  }
  return fmt::format("[{}]", fmt::join(dimensions, ", "));
}

absl::Status SetInput(const LoadedPackage& package, size_t index, const NpzReader& reader) {
  const HonePort& port = package.inputs()[index];
  const package::DType dtype = package::FindDType(port.dtype)->dtype;
  std::vector<int64_t> min(static_cast<size_t>(port.ndim)), max(min.size());
  HONE_RETURN_IF_ERROR(RuntimeError(hone_input_range(package.model(), index, min.data(), max.data(), port.ndim)));
  const auto check = [&](const NpyHeader& header) {
    bool fits = header.dtype == dtype && header.shape.size() == max.size();
    for (size_t d = 0; fits && d < max.size(); ++d) fits = header.shape[d] >= min[d] && header.shape[d] <= max[d];
    if (fits) return absl::OkStatus();
    const std::string found = Describe(header.dtype, header.shape);
    const std::string wanted = fmt::format("{} {}", package::Name(dtype), RangeText(min, max));
    std::string text = fmt::format("it is {}, the model wants {}", found, wanted);
    if (dtype == package::DType::kBFloat16 && header.dtype != package::DType::kBFloat16) {
      text += "; bf16 is type V2 in .npz files: save its bits, an array of uint16, with .view('V2')";
    }
    return absl::FailedPreconditionError(text);
  };
  HONE_ASSIGN_OR_RETURN(Array array, reader.Read(port.name, check));
  const DLTensor tensor = {array.data.data(),  {kDLCPU, 0},         port.ndim,        port.dtype,
                           array.shape.data(), /*strides=*/nullptr, /*byte_offset=*/0};
  return RuntimeError(hone_set_input(package.model(), index, &tensor));
}

}  // namespace

absl::Status SetGivenInputs(const LoadedPackage& package, const std::string& path) {
  if (path.empty()) {
    if (package.inputs().empty()) return absl::OkStatus();
    return CheckNames(package, {}, "no --input");
  }
  HONE_ASSIGN_OR_RETURN(const NpzReader reader, NpzReader::Open(path));
  return SetGivenInputs(package, reader);
}

absl::Status SetGivenInputs(const LoadedPackage& package, const NpzReader& reader) {
  const std::vector<std::string> names = reader.names();
  HONE_RETURN_IF_ERROR(CheckNames(package, names, reader.file_name()));
  for (size_t i = 0; i < package.inputs().size(); ++i) {
    const bool given = std::find(names.begin(), names.end(), package.inputs()[i].name) != names.end();
    if (given) HONE_RETURN_IF_ERROR(SetInput(package, i, reader));
  }
  return absl::OkStatus();
}

}  // namespace hone::run
