// SPDX-License-Identifier: Apache-2.0
// Operators as opsets 1 to 5 wrote them.
#include <cmath>

#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/opsets/table.h"
#include "fmt/format.h"

namespace hone::graph::opsets {
namespace {

// The names of TensorProto.DataType for the element types that Hone has.
constexpr std::pair<std::string_view, ir::DType> kTypeNames[] = {
    {"BOOL", ir::DType::kBool},       {"DOUBLE", ir::DType::kFloat64}, {"FLOAT", ir::DType::kFloat32},
    {"FLOAT16", ir::DType::kFloat16}, {"INT16", ir::DType::kInt16},    {"INT32", ir::DType::kInt32},
    {"INT64", ir::DType::kInt64},     {"INT8", ir::DType::kInt8},      {"UINT16", ir::DType::kUInt16},
    {"UINT32", ir::DType::kUInt32},   {"UINT64", ir::DType::kUInt64},  {"UINT8", ir::DType::kUInt8},
};

// Attribute to was the type's name.
absl::StatusOr<Values> Cast1(Decomposition& b) {
  const std::string to = b.String("to", "");
  for (const auto& [name, dtype] : kTypeNames) {
    if (name == to) return Values{b.Cast(b.Input(0), dtype)};
  }
  return Unsupported(fmt::format("attribute to is '{}', which is not a type that is supported", to));
}

// The default attributes had fewer digits.
absl::StatusOr<Values> Selu1(Decomposition& b) {
  const Attributes attributes = {{"alpha", b.Float("alpha", 1.6732)}, {"gamma", b.Float("gamma", 1.0507)}};
  return Values{b.Op("Selu", {b.Input(0)}, attributes)};
}

// Inputs: x, the number of repeats, the axis.
absl::StatusOr<Values> Tile1(Decomposition& b) {
  const auto number = [&](size_t i) {
    const std::optional<std::vector<double>> numbers = b.Known(b.Input(i));
    if (!numbers) b.Fail(Malformed(OpArgs::NotConstantMessage(i)));
    if (numbers && (numbers->size() != 1 || (*numbers)[0] != std::floor((*numbers)[0]))) {
      b.Fail(Malformed(fmt::format("input {} must be one integer", i)));
    }
    return b.status().ok() ? static_cast<int64_t>((*numbers)[0]) : 0;
  };
  const int64_t count = number(1), last = number(2);
  HONE_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(last, b.Rank(b.Input(0))));
  std::vector<int64_t> repeats(b.Rank(b.Input(0)), 1);
  repeats[static_cast<size_t>(axis)] = count;
  return Values{b.Op("Tile", {b.Input(0), b.List(repeats)})};
}

constexpr Rewrite kRewritesTo6[] = {
    {"Cast", 6, Cast1},
    {"Selu", 6, Selu1},
    {"Tile", 6, Tile1, 3},
};

}  // namespace

std::span<const Rewrite> RewritesTo6() { return kRewritesTo6; }

}  // namespace hone::graph::opsets
