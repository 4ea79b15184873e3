// SPDX-License-Identifier: Apache-2.0
#include "deploy/diff/check_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "deploy/run/loaded_package.h"
#include "deploy/run/npz.h"
#include "deploy/run/random_values.h"
#include "deploy/runtime/dtype.h"

namespace hone::diff {
namespace {

using Input = ProgramTables::Input;

std::string FormOf(const run::Array& array) {
  return fmt::format("{} [{}]", package::Name(array.dtype), fmt::join(array.shape, ", "));
}

run::Array DefaultOf(const Input& input) {
  return {input.dtype, input.shape, {input.default_value->begin(), input.default_value->end()}};
}

// The arrays of the file, and defaults where it has none.
absl::StatusOr<std::vector<run::Array>> InputsOfFile(const std::vector<Input>& inputs, const std::string& file) {
  HONE_ASSIGN_OR_RETURN(const run::NpzReader reader, run::NpzReader::Open(file));
  const std::vector<std::string> names = reader.names();
  std::vector<run::Array> arrays;
  for (const Input& input : inputs) {
    if (std::ranges::find(names, input.name) != names.end()) {
      HONE_ASSIGN_OR_RETURN(arrays.emplace_back(),
                            reader.Read(input.name, [](const run::NpyHeader&) { return absl::OkStatus(); }));
    } else if (input.default_value.has_value()) {
      arrays.push_back(DefaultOf(input));
    } else {
      return absl::NotFoundError(fmt::format("{}: there is no array for the input '{}'", file, input.name));
    }
  }
  return arrays;
}

// What LoadedPackage::Resize and FillInputs make.
absl::StatusOr<std::vector<run::Array>> RandomInputs(const std::vector<Input>& inputs, const ProgramTables& tables,
                                                     const std::vector<run::NamedShape>& shapes) {
  HONE_ASSIGN_OR_RETURN(const std::vector<package::InputRange> ranges, tables.InputRanges());
  std::vector<run::Array> arrays;
  for (const Input& input : inputs) {
    if (input.default_value.has_value()) {
      arrays.push_back(DefaultOf(input));
      continue;
    }
    const auto given = std::ranges::find(shapes, input.name, &run::NamedShape::name);
    run::Array& array = arrays.emplace_back(input.dtype, given == shapes.end() ? input.shape : given->extents);
    auto bytes = static_cast<size_t>(package::SizeOf(array.dtype));
    for (const int64_t extent : array.shape) bytes *= static_cast<size_t>(extent);
    array.data.resize(bytes);
  }
  std::vector<run::RandomInput> drawn;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].default_value.has_value()) drawn.push_back({inputs[i].name, inputs[i].dtype, arrays[i].data});
  }
  run::FillRandomInputs(drawn, ranges, run::kRandomInputsSeed);
  return arrays;
}

}  // namespace

absl::Status CheckInputs(const PackageRun& run, const SentInputs& sent) {
  const std::vector<Input> inputs = run.tables.Inputs();
  HONE_ASSIGN_OR_RETURN(const std::vector<run::Array> expected, sent.file.empty()
                                                                    ? RandomInputs(inputs, run.tables, sent.shapes)
                                                                    : InputsOfFile(inputs, sent.file));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = inputs[i].name;
    const auto had = std::ranges::find(run.kept.inputs, name, &run::KeptPort::name);
    if (had == run.kept.inputs.end()) {
      return absl::DataLossError(fmt::format("the run does not say what the input '{}' was", name));
    }
    const run::Array& actual = had->array;
    if (actual.dtype != expected[i].dtype || actual.shape != expected[i].shape) {
      return absl::DataLossError(
          fmt::format("the run had {} as input '{}', and was to have {}", FormOf(actual), name, FormOf(expected[i])));
    }
    if (actual.data == expected[i].data) continue;
    return absl::DataLossError(fmt::format(
        "the run had other elements in the input '{}' than it was sent; its device reads inputs wrongly, or "
        "does not tell the truth",
        name));
  }
  return absl::OkStatus();
}

}  // namespace hone::diff
