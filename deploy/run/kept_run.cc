// SPDX-License-Identifier: Apache-2.0
#include "deploy/run/kept_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "deploy/runtime/dtype.h"

namespace hone::run {
namespace {

constexpr std::string_view kProgram = "program";
constexpr uint64_t kKeptBytesMax = uint64_t{1} << 30;  // as of the outputs of a run (run.proto)
constexpr std::string_view kInput = "input/", kOutput = "output/", kValue = "value/";

Array ArrayOf(const DLTensor& tensor) {
  Array array;
  array.dtype = package::FindDType(tensor.dtype)->dtype;
  array.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  auto bytes = static_cast<size_t>(SizeOf(array.dtype));
  for (const int64_t extent : array.shape) bytes *= static_cast<size_t>(extent);
  const auto* const data = static_cast<const uint8_t*>(tensor.data);
  if (bytes > 0) array.data.assign(data, data + bytes);
  return array;
}

// The numbers of "CALL/TENSOR".
std::optional<std::pair<size_t, size_t>> ParsePlace(std::string_view text) {
  size_t call = 0, tensor = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, call);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '/') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, tensor);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return std::pair(call, tensor);
}

}  // namespace

absl::StatusOr<KeptRun> RunAndKeep(LoadedPackage& package) {
  KeptRun kept;
  for (size_t i = 0; i < package.inputs().size(); ++i) {
    DLTensor view;
    HONE_RETURN_IF_ERROR(RuntimeError(hone_get_input(package.model(), i, &view)));
    kept.inputs.push_back({package.inputs()[i].name, ArrayOf(view)});
  }
  HONE_RETURN_IF_ERROR(package.RunWatched([&kept](const HoneValue& value) {
    // All values of a tensor come one after the other.
    const bool is_known =
        !kept.tensors.empty() && kept.tensors.back().call == value.call && kept.tensors.back().tensor == value.number;
    if (!is_known) kept.tensors.push_back({value.call, value.number, ArrayOf(value.tensor)});
  }));
  kept.program = static_cast<int64_t>(hone_program(package.model()));
  HONE_ASSIGN_OR_RETURN(const std::vector<ArrayView> outputs, package.Outputs());
  for (const ArrayView& output : outputs) {
    kept.outputs.push_back(
        {output.name,
         {output.dtype, {output.shape.begin(), output.shape.end()}, {output.data.begin(), output.data.end()}}});
  }
  return kept;
}

std::vector<ArrayView> ArraysOf(const KeptRun& run) {
  std::vector<ArrayView> arrays;
  const auto add = [&arrays](std::string name, const Array& array) {
    arrays.push_back({std::move(name), array.dtype, array.shape, array.data});
  };
  arrays.push_back({std::string(kProgram),
                    package::DType::kInt64,
                    {},
                    {reinterpret_cast<const uint8_t*>(&run.program), sizeof run.program}});
  for (const KeptPort& input : run.inputs) add(fmt::format("{}{}", kInput, input.name), input.array);
  for (const KeptPort& output : run.outputs) add(fmt::format("{}{}", kOutput, output.name), output.array);
  for (const KeptTensor& kept : run.tensors) add(fmt::format("{}{}/{}", kValue, kept.call, kept.tensor), kept.array);
  return arrays;
}

absl::StatusOr<KeptRun> ReadKept(const NpzReader& reader) {
  KeptRun run;
  bool has_program = false;
  uint64_t left = kKeptBytesMax;  // compressed members may claim any size
  const auto fits = [&](const NpyHeader& header) {
    if (header.data_bytes > left) {
      return absl::DataLossError(
          fmt::format("{}: its arrays have more than {} bytes", reader.file_name(), kKeptBytesMax));
    }
    left -= header.data_bytes;
    return absl::OkStatus();
  };
  for (const std::string& name : reader.names()) {
    HONE_ASSIGN_OR_RETURN(Array array, reader.Read(name, fits));
    if (name == kProgram && array.data.size() == sizeof run.program) {
      std::memcpy(&run.program, array.data.data(), sizeof run.program);
      has_program = true;
    } else if (name.starts_with(kInput)) {
      run.inputs.push_back({name.substr(kInput.size()), std::move(array)});
    } else if (name.starts_with(kOutput)) {
      run.outputs.push_back({name.substr(kOutput.size()), std::move(array)});
    } else {
      const auto place =
          name.starts_with(kValue) ? ParsePlace(std::string_view(name).substr(kValue.size())) : std::nullopt;
      if (!place.has_value())
        return absl::DataLossError(
            fmt::format("{}: array '{}' is not part of a run whose values were kept; update hone-agent on the device: "
                        "versions before this one return only outputs",
                        reader.file_name(), name));
      run.tensors.push_back({place->first, place->second, std::move(array)});
    }
  }
  if (!has_program)
    return absl::DataLossError(fmt::format("{}: it does not say which program ran", reader.file_name()));
  std::ranges::sort(run.tensors, {}, [](const KeptTensor& kept) { return std::pair(kept.call, kept.tensor); });
  return run;
}

}  // namespace hone::run
