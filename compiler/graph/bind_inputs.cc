// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/bind_inputs.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/half_float.h"
#include "base/split.h"
#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/ir/numeric.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::graph {
namespace {

constexpr int64_t kIrWithDefaultsMin = 4;  // before, ONNX required every initializer to be listed as an input

std::string DeclaredShape(const RawInput& input) {
  std::string text;
  for (const RawDimension& dim : *input.shape) {
    if (!text.empty()) text += ',';
    text += dim.extent ? std::to_string(*dim.extent) : dim.symbol.empty() ? "?" : dim.symbol;
  }
  return text;
}

// The command-line text to suggest for an input's shape, with a plausible number in place of each unknown dimension.
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
    for (const RawInput& input : inputs) {
      if (input.name == name || (input.IsSequence() && name.starts_with(input.name + "."))) return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        fmt::format("the model has no input '{}'; its inputs are: {}", name, fmt::join(names, ", ")));
  };
  for (const auto& [name, shape] : options.shapes) HONE_RETURN_IF_ERROR(check(name));
  for (const auto& [name, value] : options.bound_inputs) HONE_RETURN_IF_ERROR(check(name));
  for (const auto& [name, text] : options.bound_texts) HONE_RETURN_IF_ERROR(check(name));
  return absl::OkStatus();
}

template <typename T>
const T* Find(const std::map<std::string, T>& map, const std::string& name) {
  auto it = map.find(name);
  return it != map.end() ? &it->second : nullptr;
}

// Splits "2,3" into its numbers; an empty text has none.
std::vector<std::string_view> SplitNumbers(std::string_view text) {
  if (text.empty()) return {};
  return SplitAt(text, ',');
}

// The shape that the caller gives for this input, if any. Bound text gives the shape of a one-dimensional input whose
// length is not declared.
std::optional<std::vector<DimRange>> GivenShape(const RawInput& input, const ImportOptions& options) {
  if (const auto* shape = Find(options.shapes, input.name)) return *shape;
  if (const auto* bound = Find(options.bound_inputs, input.name)) {
    const std::vector<int64_t> shape = ir::Values(bound->type.shape);
    return std::vector<DimRange>(shape.begin(), shape.end());
  }
  const std::string* text = Find(options.bound_texts, input.name);
  const bool open_list = input.shape && input.shape->size() == 1 && !input.shape->front().extent;
  if (text == nullptr || !open_list) return std::nullopt;
  return std::vector<DimRange>{static_cast<int64_t>(SplitNumbers(*text).size())};
}

absl::Status CheckGiven(const RawInput& input, const std::vector<DimRange>& given) {
  std::vector<std::string> texts;
  for (const DimRange& range : given) texts.push_back(Print(range));
  const auto error = [&](std::string_view problem) {
    return absl::InvalidArgumentError(
        fmt::format("input '{}': the given shape {} {}", input.name, fmt::join(texts, ","), problem));
  };
  for (const DimRange& range : given) {
    if (range.min < 0) return error("has a negative dimension");
    if (range.max < range.min || range.step < 1) return error("has a range without values");
    if (range.min % range.step != 0 || range.max % range.step != 0) {
      return error("has a range whose ends are not multiples of its step");
    }
  }
  bool fits = !input.shape || input.shape->size() == given.size();
  for (size_t i = 0; fits && input.shape && i < given.size(); ++i) {
    const RawDimension& dim = (*input.shape)[i];
    fits = dim.extent.value_or(0) == 0 || DimRange(*dim.extent) == given[i];  // 0: see ReadInput
  }
  if (fits) return absl::OkStatus();
  return error(fmt::format("does not fit the model's {}", DeclaredShape(input)));
}

// Returns the size of a dimension: a number, or a multiple of the open size `name`.
ir::Size DimensionSize(const std::string& name, const DimRange& range) {
  if (range.min == range.max) return range.min;
  return ir::Size::Open({name, range.min / range.step, range.max / range.step}) * range.step;
}

// Parses `text` as an element of T and appends it to `bytes`; returns false if it is not one.
template <typename T>
bool AppendAs(std::string_view text, std::vector<std::byte>& bytes) {
  T value{};
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || last != text.data() + text.size()) return false;
  const auto* raw = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof(T));
  return true;
}

bool AppendBits(std::string_view text, uint16_t (*narrow)(double), std::vector<std::byte>& bytes) {
  std::vector<std::byte> wide;
  if (!AppendAs<double>(text, wide)) return false;
  double value = 0;
  std::memcpy(&value, wide.data(), sizeof value);
  const uint16_t bits = narrow(value);
  const auto* raw = reinterpret_cast<const std::byte*>(&bits);
  bytes.insert(bytes.end(), raw, raw + sizeof bits);
  return true;
}

bool AppendNumber(std::string_view text, ir::DType dtype, std::vector<std::byte>& bytes) {
  using ir::DType;
  switch (dtype) {
    case DType::kBool:
      bytes.push_back(std::byte{text == "1" || text == "true"});
      return text == "0" || text == "1" || text == "false" || text == "true";
    case DType::kInt8:
      return AppendAs<int8_t>(text, bytes);
    case DType::kInt16:
      return AppendAs<int16_t>(text, bytes);
    case DType::kInt32:
      return AppendAs<int32_t>(text, bytes);
    case DType::kInt64:
      return AppendAs<int64_t>(text, bytes);
    case DType::kUInt8:
      return AppendAs<uint8_t>(text, bytes);
    case DType::kUInt16:
      return AppendAs<uint16_t>(text, bytes);
    case DType::kUInt32:
      return AppendAs<uint32_t>(text, bytes);
    case DType::kUInt64:
      return AppendAs<uint64_t>(text, bytes);
    case DType::kFloat16:
      return AppendBits(text, HalfBits, bytes);
    case DType::kBFloat16:
      return AppendBits(text, BFloatBits, bytes);
    case DType::kFloat32:
      return AppendAs<float>(text, bytes);
    case DType::kFloat64:
      return AppendAs<double>(text, bytes);
  }
  return false;
}

absl::StatusOr<TensorData> ReadNumbers(const std::string& name, const TensorType& type, std::string_view text) {
  const std::vector<std::string_view> pieces = SplitNumbers(text);
  if (std::ranges::find(pieces, "") != pieces.end()) {
    return absl::InvalidArgumentError(
        fmt::format("input '{}': the bound value '{}' has an empty entry between commas; write it as 2,3", name, text));
  }
  if (static_cast<int64_t>(pieces.size()) != type.elements()) {
    return absl::InvalidArgumentError(fmt::format("input '{}' is {}: it needs {} numbers, but the bound value has {}",
                                                  name, Print(type), type.elements(), pieces.size()));
  }
  std::vector<std::byte> bytes;
  for (const std::string_view piece : pieces) {
    if (AppendNumber(piece, type.dtype, bytes)) continue;
    return absl::InvalidArgumentError(fmt::format("input '{}' is {}: '{}' in the bound value is not a {}", name,
                                                  Print(type), piece, ir::Name(type.dtype)));
  }
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

}  // namespace

std::string Print(const DimRange& range) {
  std::string text = std::to_string(range.min);
  if (range.max != range.min) text += fmt::format("..{}", range.max);
  if (range.step != 1) text += fmt::format(":{}", range.step);
  return text;
}

std::optional<ir::Size> SumOf(const std::string& name, const DimRanges& symbols) {
  if (name.find('+') == std::string::npos) return std::nullopt;
  ir::Size sum = 0;
  for (std::string_view term : SplitAt(name, '+')) {
    while (term.starts_with(' ')) term.remove_prefix(1);
    while (term.ends_with(' ')) term.remove_suffix(1);
    const auto known = symbols.find(std::string(term));
    int64_t number = 0;
    const auto [last, error] = std::from_chars(term.data(), term.data() + term.size(), number);
    if (known != symbols.end()) {
      sum += DimensionSize(known->first, known->second);
    } else if (error == std::errc() && last == term.data() + term.size()) {
      sum += number;
    } else {
      return std::nullopt;
    }
  }
  return sum;
}

std::string SizeName(const RawInput& input, size_t dimension) {
  if (input.shape && !(*input.shape)[dimension].symbol.empty()) return (*input.shape)[dimension].symbol;
  return fmt::format("{}.{}", input.name, dimension);
}

bool IsGiven(const RawInput& input, const ImportOptions& options) {
  return GivenShape(input, options).has_value() || options.bound_texts.contains(input.name);
}

absl::StatusOr<DimRanges> BindSymbols(const std::vector<RawInput>& inputs, const ImportOptions& options) {
  HONE_RETURN_IF_ERROR(CheckNames(inputs, options));
  DimRanges symbols;
  for (const RawInput& input : inputs) {
    const std::optional<std::vector<DimRange>> given = GivenShape(input, options);
    if (!given || input.IsSequence()) continue;
    HONE_RETURN_IF_ERROR(CheckGiven(input, *given));
    for (size_t i = 0; input.shape && i < given->size(); ++i) {
      const RawDimension& dim = (*input.shape)[i];
      if (dim.extent || dim.symbol.empty()) continue;
      auto [it, added] = symbols.emplace(dim.symbol, (*given)[i]);
      if (added || it->second == (*given)[i]) continue;
      return absl::InvalidArgumentError(fmt::format("input '{}': dimension '{}' is {} here and {} in another input",
                                                    input.name, dim.symbol, Print((*given)[i]), Print(it->second)));
    }
  }
  symbols.insert(options.ranges.begin(), options.ranges.end());
  return symbols;
}

absl::StatusOr<std::vector<RawInput>> ContentOf(const RawInput& input, const ImportOptions& options) {
  RawInput tensor = input;
  tensor.container = RawInput::Container::kNone;
  tensor.type_error = absl::OkStatus();
  const auto given = options.shapes.find(input.name);
  if (!input.IsSequence()) {
    if (given == options.shapes.end()) return Annotate(input.type_error, fmt::format("input '{}'", input.name));
    return std::vector<RawInput>{std::move(tensor)};
  }
  std::vector<RawInput> elements;
  while (true) {
    tensor.name = fmt::format("{}.{}", input.name, elements.size());
    if (!options.shapes.contains(tensor.name)) break;
    elements.push_back(tensor);
  }
  const bool is_empty = given != options.shapes.end() && given->second.empty();
  if (elements.empty() && !is_empty) return Annotate(input.type_error, fmt::format("input '{}'", input.name));
  return elements;
}

std::set<std::string> DefaultedInputs(const RawModel& model, const ImportOptions& options,
                                      const std::set<std::string>& bound) {
  std::set<std::string> names;
  if (options.defaults_are_constants || model.ir_version < kIrWithDefaultsMin) return names;
  std::set<std::string> initializers;
  for (const RawInitializer& tensor : model.graph.initializers) {
    if (tensor.constant.ok() && tensor.small == nullptr) initializers.insert(tensor.name);
  }
  for (const RawInput& input : model.graph.inputs) {
    if (initializers.contains(input.name) && !bound.contains(input.name)) names.insert(input.name);
  }
  return names;
}

absl::StatusOr<TensorData> BindInputValue(const RawInput& input, const TensorType& type, const ImportOptions& options) {
  if (const Constant* bound = Find(options.bound_inputs, input.name)) {
    if (bound->type != type) {
      return absl::InvalidArgumentError(fmt::format("input '{}' is {}, the bound value is {}; give it as {}",
                                                    input.name, Print(type), Print(bound->type), Print(type)));
    }
    HONE_CHECK(bound->data != nullptr && static_cast<int64_t>(bound->data->size()) == ByteSize(bound->type));
    return bound->data;
  }
  const std::string* text = Find(options.bound_texts, input.name);
  return text == nullptr ? TensorData() : ReadNumbers(input.name, type, *text);
}

absl::StatusOr<TensorType> BindInputType(const RawInput& input, const DimRanges& symbols,
                                         const ImportOptions& options) {
  const std::string name = fmt::format("input '{}'", input.name);
  if (!input.type_error.ok()) return Annotate(input.type_error, name);
  TensorType type{input.dtype, {}};
  const auto given = GivenShape(input, options);
  if (!given && !input.shape) {
    return absl::InvalidArgumentError(
        fmt::format("{} has no shape in the model: give it, for example with {}", name, SuggestedShape(input)));
  }
  for (size_t i = 0; given && i < given->size(); ++i) {
    const std::string size = SizeName(input, i);
    const std::optional<ir::Size> sum = (*given)[i].min == (*given)[i].max ? std::nullopt : SumOf(size, symbols);
    type.shape.push_back(sum.has_value() ? *sum : DimensionSize(size, (*given)[i]));
  }
  for (size_t i = 0; !given && i < input.shape->size(); ++i) {
    const RawDimension& dim = (*input.shape)[i];
    const auto symbol = symbols.find(SizeName(input, i));
    if (const std::optional<ir::Size> sum = SumOf(dim.symbol, symbols); !dim.extent && sum.has_value()) {
      type.shape.push_back(*sum);
      continue;
    }
    if (!dim.extent && symbol == symbols.end()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: dimension {} ('{}') is not known: give the shape, for example with {}", name, i,
                      dim.symbol.empty() ? "?" : dim.symbol, SuggestedShape(input)));
    }
    type.shape.push_back(dim.extent ? ir::Size(*dim.extent) : DimensionSize(symbol->first, symbol->second));
  }
  HONE_RETURN_IF_ERROR(Annotate(CheckSize(type), name));
  return type;
}

}  // namespace hone::graph
