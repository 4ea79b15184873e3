// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/op.h"

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/graph/convert_attribute.h"
#include "compiler/graph/ops/families.h"
#include "compiler/graph/size_elements.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

std::vector<ir::Axis> MakeAxes(const std::string& stage, char kind, const ir::Shape& extents) {
  std::vector<ir::Axis> axes;
  for (size_t i = 0; i < extents.size(); ++i) axes.push_back({fmt::format("{}_{}{}", stage, kind, i), extents[i]});
  return axes;
}

std::vector<ir::Expr> AxisVars(const std::vector<ir::Axis>& axes) {
  std::vector<ir::Expr> vars;
  for (const ir::Axis& axis : axes) vars.push_back(ir::MakeVar(axis.name));
  return vars;
}

template <typename T>
T ReadAttribute(const OpArgs& args, std::string_view name, T fallback, std::string_view wanted) {
  auto it = args.node.attributes.find(std::string(name));
  if (it == args.node.attributes.end()) return fallback;
  if (const std::optional<T> value = ConvertAttribute<T>(it->second)) return *value;
  args.WrongType(name, wanted);
  return fallback;
}

template <typename T>
std::vector<int64_t> WidenInts(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return std::vector<int64_t>(values.begin(), values.end());
}

}  // namespace

ir::Buffer StageBuilder::Compute(std::string_view hint, ir::DType dtype, ir::Shape shape, const Body& value) {
  return Reduce(hint, dtype, std::move(shape), {}, ir::Reduction::kNone,
                [&](std::span<const ir::Expr> indices, std::span<const ir::Expr>) { return value(indices); });
}

ir::Buffer StageBuilder::Reduce(std::string_view hint, ir::DType dtype, ir::Shape shape, ir::Shape reduce_extents,
                                ir::Reduction reduction, const ReduceBody& value) {
  ir::Stage stage;
  const std::string name = fmt::format("{}_{}", hint, next_++);
  stage.axes = MakeAxes(name, 'i', shape);
  stage.reduce_axes = MakeAxes(name, 'r', reduce_extents);
  stage.reduction = reduction;
  stage.buffer = ir::MakeBuffer(name, dtype, std::move(shape));
  const std::vector<ir::Expr> indices = AxisVars(stage.axes), reduce_indices = AxisVars(stage.reduce_axes);
  stage.value = value(indices, reduce_indices);
  HONE_CHECK(stage.value.type() == (ir::Type{dtype, 1}));
  stages_.push_back(std::move(stage));
  return stages_.back().buffer;
}

int64_t OpArgs::Int(std::string_view name, int64_t fallback) const {
  return ReadAttribute<int64_t>(*this, name, fallback, "an integer");
}

double OpArgs::Float(std::string_view name, double fallback) const {
  return static_cast<float>(ReadAttribute<double>(*this, name, fallback, "a float"));
}

std::string OpArgs::String(std::string_view name, std::string_view fallback) const {
  return ReadAttribute<std::string>(*this, name, std::string(fallback), "a string");
}

std::vector<int64_t> OpArgs::Ints(std::string_view name, std::vector<int64_t> fallback) const {
  return ReadAttribute<std::vector<int64_t>>(*this, name, std::move(fallback), "a list of integers");
}

void OpArgs::WrongType(std::string_view name, std::string_view wanted) const {
  if (!attribute_error.ok()) return;
  attribute_error = absl::InvalidArgumentError(fmt::format("attribute '{}' must be {}", name, wanted));
}

std::string OpArgs::NotConstantMessage(size_t i) {
  return fmt::format(
      "input {} must be known when the model is compiled; if it comes from a model input, fix that input's value with "
      "--bind NAME=VALUES or --bind NAME=FILE.npy",
      i);
}

absl::StatusOr<std::vector<int64_t>> OpArgs::ConstantInts(size_t i) const {
  if (!Has(i)) return absl::InvalidArgumentError(fmt::format("input {} is missing", i));
  if (i >= constants.size() || constants[i] == nullptr) {
    return absl::UnimplementedError(NotConstantMessage(i));
  }
  if (inputs[i]->dtype == ir::DType::kInt64) return WidenInts<int64_t>(*constants[i]);
  if (inputs[i]->dtype == ir::DType::kInt32) return WidenInts<int32_t>(*constants[i]);
  return absl::InvalidArgumentError(
      fmt::format("input {} has type {}; only i32 and i64 are supported here", i, ir::Name(inputs[i]->dtype)));
}

absl::StatusOr<ir::Shape> OpArgs::ConstantSizes(size_t i) const {
  if (i >= elements.size() || elements[i] == nullptr) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, ConstantInts(i));
    return ir::Shape(numbers);
  }
  std::optional<ir::Shape> result = SizesOf(*elements[i], sizes);
  if (!result.has_value()) return absl::InvalidArgumentError(NotConstantMessage(i));
  return *std::move(result);
}

const OpDef* FindOp(std::string_view domain, std::string_view name) {
  for (const OpFamily& family : AllFamilies()) {
    if (family.domain != domain) continue;
    for (const OpDef& op : family.ops) {
      if (op.name == name) return &op;
    }
  }
  return nullptr;
}

}  // namespace hone::graph
