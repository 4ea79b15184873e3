#include "compiler/graph/bind_inputs.h"

#include <map>
#include <string>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::graph {
namespace {

std::string DeclaredShape(const RawInput& input) {
  std::string text;
  for (const RawDimension& dim : *input.shape) {
    if (!text.empty()) text += ',';
    text += dim.extent ? std::to_string(*dim.extent) : dim.symbol.empty() ? "?" : dim.symbol;
  }
  return text;
}

// What to type, with a plausible number in place of what is not known.
std::string SuggestedShape(const RawInput& input) {
  std::vector<int64_t> shape;
  if (input.shape) {
    for (const RawDimension& dim : *input.shape) shape.push_back(dim.extent.value_or(1));
  } else {
    shape = {1, 3, 224, 224};
  }
  return fmt::format("--shape {}={}", input.name, fmt::join(shape, ","));
}

absl::Status CheckNames(const std::vector<RawInput>& inputs, const ImportOptions& options) {
  std::vector<std::string> names;
  for (const RawInput& input : inputs) names.push_back(input.name);
  auto check = [&](const std::string& name) -> absl::Status {
    for (const std::string& known : names) {
      if (known == name) return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        fmt::format("the model has no input '{}'; its inputs are: {}", name, fmt::join(names, ", ")));
  };
  for (const auto& [name, shape] : options.shapes) HONE_RETURN_IF_ERROR(check(name));
  for (const auto& [name, value] : options.bound_inputs) HONE_RETURN_IF_ERROR(check(name));
  return absl::OkStatus();
}

// The shape that the caller gives for this input, or nullptr.
const std::vector<int64_t>* GivenShape(const RawInput& input, const ImportOptions& options) {
  auto bound = options.bound_inputs.find(input.name);
  if (bound != options.bound_inputs.end()) return &bound->second.type.shape;
  auto shape = options.shapes.find(input.name);
  return shape != options.shapes.end() ? &shape->second : nullptr;
}

absl::Status CheckGiven(const RawInput& input, const std::vector<int64_t>& given) {
  for (int64_t extent : given) {
    if (extent < 0) {
      return absl::InvalidArgumentError(
          fmt::format("input '{}': the given shape {} has a negative dimension", input.name, fmt::join(given, ",")));
    }
  }
  bool fits = !input.shape || input.shape->size() == given.size();
  for (size_t i = 0; fits && input.shape && i < given.size(); ++i) {
    const RawDimension& dim = (*input.shape)[i];
    fits = !dim.extent || *dim.extent == given[i];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("input '{}': the given shape {} does not fit the model's {}",
                                                input.name, fmt::join(given, ","), DeclaredShape(input)));
}

absl::StatusOr<std::map<std::string, int64_t>> BindSymbols(const std::vector<RawInput>& inputs,
                                                           const ImportOptions& options) {
  std::map<std::string, int64_t> symbols;
  for (const RawInput& input : inputs) {
    const std::vector<int64_t>* given = GivenShape(input, options);
    if (given == nullptr) continue;
    HONE_RETURN_IF_ERROR(CheckGiven(input, *given));
    for (size_t i = 0; input.shape && i < given->size(); ++i) {
      const RawDimension& dim = (*input.shape)[i];
      if (dim.extent || dim.symbol.empty()) continue;
      auto [it, added] = symbols.emplace(dim.symbol, (*given)[i]);
      if (added || it->second == (*given)[i]) continue;
      return absl::InvalidArgumentError(fmt::format("input '{}': dimension '{}' is {} here and {} in another input",
                                                    input.name, dim.symbol, (*given)[i], it->second));
    }
  }
  return symbols;
}

}  // namespace

absl::StatusOr<std::vector<TensorType>> BindInputTypes(const std::vector<RawInput>& inputs,
                                                       const ImportOptions& options) {
  HONE_RETURN_IF_ERROR(CheckNames(inputs, options));
  HONE_ASSIGN_OR_RETURN(auto symbols, BindSymbols(inputs, options));
  std::vector<TensorType> types;
  for (const RawInput& input : inputs) {
    TensorType type{input.dtype, {}};
    if (const std::vector<int64_t>* given = GivenShape(input, options)) {
      type.shape = *given;
      types.push_back(std::move(type));
      continue;
    }
    if (!input.shape) {
      return absl::InvalidArgumentError(fmt::format(
          "input '{}' has no shape in the model: give it, for example with {}", input.name, SuggestedShape(input)));
    }
    for (size_t i = 0; i < input.shape->size(); ++i) {
      const RawDimension& dim = (*input.shape)[i];
      auto symbol = symbols.find(dim.symbol);
      if (!dim.extent && symbol == symbols.end()) {
        return absl::InvalidArgumentError(
            fmt::format("input '{}': dimension {} ('{}') is not known: give the shape, for example with {}", input.name,
                        i, dim.symbol.empty() ? "?" : dim.symbol, SuggestedShape(input)));
      }
      type.shape.push_back(dim.extent ? *dim.extent : symbol->second);
    }
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace hone::graph
