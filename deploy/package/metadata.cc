// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/metadata.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace hone::package {
namespace {

using nlohmann::json;

// Calls each(element) for every element of the list `object[list]`; none if the list is missing. Elements are not
// copied, because copying a deeply nested one recurses and may overflow the stack.
template <typename Each>
void ForEachIn(const json& object, const char* list, const Each& each) {
  const auto found = object.find(list);
  if (found == object.end()) return;
  for (const json& element : *found) each(element);
}

KernelMetadata ParseKernel(const json& kernel) {
  return {.symbol = kernel.value("symbol", ""),
          .operator_name = kernel.value("operator", ""),
          .workload_digest = kernel.value("workload", ""),
          .schedule = kernel.value("schedule", ""),
          .flops = kernel.value("flops", 0.0),
          .bytes = kernel.value("bytes", 0.0),
          .target = kernel.value("target", "")};
}

json ToJson(const ProgramMetadata& program) {
  json kernels = json::array();
  for (const KernelMetadata& kernel : program.kernels) {
    kernels.push_back({{"symbol", kernel.symbol},
                       {"operator", kernel.operator_name},
                       {"workload", kernel.workload_digest},
                       {"schedule", kernel.schedule},
                       {"flops", kernel.flops},
                       {"bytes", kernel.bytes}});
    if (!kernel.target.empty()) kernels.back()["target"] = kernel.target;
  }
  json result = {{"target", program.target}, {"kernels", std::move(kernels)}};
  if (program.varies) result["varies"] = true;
  return result;
}

ProgramMetadata ParseProgram(const json& program) {
  ProgramMetadata result;
  result.target = program.value("target", "");
  result.varies = program.value("varies", false);
  ForEachIn(program, "kernels", [&](const json& kernel) { result.kernels.push_back(ParseKernel(kernel)); });
  return result;
}

}  // namespace

std::string ToJson(const PackageMetadata& metadata) {
  json programs = json::array();
  for (const ProgramMetadata& program : metadata.programs) programs.push_back(ToJson(program));
  json ranges = json::array();
  for (const InputRange& range : metadata.input_ranges) {
    ranges.push_back({{"name", range.name}, {"low", range.low}, {"high", range.high}});
  }
  const json document = {{"model", metadata.model_name},
                         {"compiler_version", metadata.compiler_version},
                         {"programs", std::move(programs)},
                         {"input_ranges", std::move(ranges)}};
  // The model's author chose its name, so it may be invalid UTF-8: `replace` writes U+FFFD instead of throwing.
  return document.dump(2, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<PackageMetadata> ParseMetadata(std::string_view text) {
  try {
    const json document = json::parse(text);
    PackageMetadata metadata;
    metadata.model_name = document.value("model", "");
    metadata.compiler_version = document.value("compiler_version", "");
    ForEachIn(document, "programs", [&](const json& program) { metadata.programs.push_back(ParseProgram(program)); });
    ForEachIn(document, "input_ranges", [&](const json& range) {
      metadata.input_ranges.push_back({range.value("name", ""), range.value("low", 0.0), range.value("high", 0.0)});
    });
    return metadata;
  } catch (const json::exception& error) {
    return absl::DataLossError(
        fmt::format("the metadata of the package is damaged or not written by hone: {}", error.what()));
  }
}

}  // namespace hone::package
