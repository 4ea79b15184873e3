// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/decompose/decomposition.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op.h"
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/size_elements.h"
#include "compiler/ir/elements.h"
#include "fmt/format.h"

namespace hone::graph::decompose {

bool Decomposition::HasAttribute(std::string_view name) const { return node_.attributes.contains(std::string(name)); }

template <typename T>
T Decomposition::Read(std::string_view name, T fallback, std::string_view wanted) {
  auto it = node_.attributes.find(std::string(name));
  if (it == node_.attributes.end()) return fallback;
  if (const T* value = std::get_if<T>(&it->second)) return *value;
  Fail(Malformed(fmt::format("attribute '{}' must be {}", name, wanted)));
  return fallback;
}

int64_t Decomposition::Int(std::string_view name, int64_t fallback) {
  return Read<int64_t>(name, fallback, "an integer");
}

double Decomposition::Float(std::string_view name, double fallback) {
  return Read<double>(name, static_cast<float>(fallback), "a float");
}

std::string Decomposition::String(std::string_view name, std::string_view fallback) {
  return Read<std::string>(name, std::string(fallback), "a string");
}

std::vector<int64_t> Decomposition::Ints(std::string_view name, std::vector<int64_t> fallback) {
  return Read<std::vector<int64_t>>(name, std::move(fallback), "a list of integers");
}

std::vector<double> Decomposition::Floats(std::string_view name, std::vector<double> fallback) {
  return Read<std::vector<double>>(name, std::move(fallback), "a list of floats");
}

std::vector<std::string> Decomposition::Strings(std::string_view name, std::vector<std::string> fallback) {
  return Read<std::vector<std::string>>(name, std::move(fallback), "a list of strings");
}

bool Decomposition::HasGraph(std::string_view name) const {
  return std::ranges::find(Graphs(), name) != Graphs().end();
}

ValueId Decomposition::Inline(std::string_view name, ValueId x) {
  if (!status_.ok()) return kAbsent;
  const absl::StatusOr<Values> outputs = writer_.graphs.write(std::string(name), {x});
  if (!outputs.ok()) {
    Fail(outputs.status());
  } else if (outputs->size() != 1) {
    Fail(Malformed(fmt::format("the graph {} must have one output", name)));
  }
  return status_.ok() ? outputs->front() : kAbsent;
}

const TensorType& Decomposition::Type(ValueId value) const {
  static const TensorType kNone;
  return value == kAbsent ? kNone : writer_.graph.values[value].type;
}

std::optional<int64_t> Decomposition::KnownExtent(ValueId value, int64_t axis) const {
  const int64_t from_front = AxisFromFront(axis, Rank(value));
  if (from_front < 0 || from_front >= static_cast<int64_t>(Rank(value))) return std::nullopt;
  const ir::Size& extent = Type(value).shape[static_cast<size_t>(from_front)];
  return extent.IsFixed() ? std::optional(extent.value()) : std::nullopt;
}

int64_t Decomposition::Extent(ValueId value, int64_t axis) {
  if (const std::optional<int64_t> extent = KnownExtent(value, axis)) return *extent;
  Fail(Malformed(fmt::format("a tensor has {} dimensions; it needs dimension {}", Rank(value), axis)));
  return 1;
}

bool Decomposition::SameExtent(ValueId a, int64_t axis_a, ValueId b, int64_t axis_b) const {
  const int64_t front_a = AxisFromFront(axis_a, Rank(a)), front_b = AxisFromFront(axis_b, Rank(b));
  if (front_a < 0 || front_b < 0) return false;
  const size_t i = static_cast<size_t>(front_a), k = static_cast<size_t>(front_b);
  return i < Rank(a) && k < Rank(b) && Type(a).shape[i] == Type(b).shape[k];
}

bool Decomposition::IsKnown(ValueId value) {
  if (!status_.ok() || value == kAbsent) return false;
  Fail(writer_.compute(value));
  return status_.ok() && writer_.graph.values[value].data != nullptr;
}

std::optional<std::vector<double>> Decomposition::Known(ValueId value) {
  if (!IsKnown(value)) return std::nullopt;
  const TensorData& data = writer_.graph.values[value].data;
  const ir::DType dtype = ElementType(value);
  std::vector<double> numbers;
  for (size_t at = 0; at < data->size(); at += static_cast<size_t>(ir::SizeOf(dtype))) {
    numbers.push_back(ir::ElementAsDouble(dtype, data->data() + at));
  }
  return numbers;
}

std::vector<int64_t> Decomposition::ConstantInts(size_t i) {
  if (!Has(i)) {
    Fail(Malformed(fmt::format("input {} is missing", i)));
  } else if (!ir::IsInt(ElementType(Input(i)))) {
    Fail(Malformed(fmt::format("input {} has type {}; it must have integers", i, ir::Name(ElementType(Input(i))))));
  } else if (const std::optional<std::vector<double>> numbers = Known(Input(i))) {
    return std::vector<int64_t>(numbers->begin(), numbers->end());
  } else {
    Fail(absl::InvalidArgumentError(OpArgs::NotConstantMessage(i)));
  }
  return {};
}

Values Decomposition::Ops(std::string_view op, Values inputs, size_t outputs, Attributes attributes,
                          std::string_view domain) {
  if (!status_.ok()) return Values(outputs, kAbsent);
  Node node{.name = fmt::format("{}/{}", node_.name, op),
            .op = std::string(op),
            .domain = std::string(domain),
            .opset = kOwnOpset,
            .inputs = std::move(inputs),
            .outputs = Values(outputs, kNewValue),
            .attributes = std::move(attributes)};
  absl::StatusOr<Values> added = writer_.add(std::move(node));
  if (added.ok()) return *std::move(added);
  Fail(added.status());
  return Values(outputs, kAbsent);
}

ValueId Decomposition::Op(std::string_view op, Values inputs, Attributes attributes, std::string_view domain) {
  return Ops(op, std::move(inputs), 1, std::move(attributes), domain)[0];
}

ValueId Decomposition::Number(ir::DType dtype, double number) { return Tensor(dtype, {}, {number}); }

ValueId Decomposition::List(const std::vector<int64_t>& integers) {
  return AddInts(writer_.graph, node_.name, integers);
}

ValueId Decomposition::Tensor(ir::DType dtype, std::vector<int64_t> shape, const std::vector<double>& numbers) {
  const size_t size = static_cast<size_t>(ir::SizeOf(dtype));
  auto data = std::make_shared<std::vector<std::byte>>(numbers.size() * size);
  for (size_t i = 0; i < numbers.size(); ++i) {
    ir::WriteElement(ir::MakeConst({dtype, 1}, numbers[i]), data->data() + i * size);
  }
  return AddValue(writer_.graph, node_.name, {dtype, std::move(shape)}, std::move(data));
}

ValueId Decomposition::Cast(ValueId x, ir::DType dtype) {
  return x == kAbsent || ElementType(x) == dtype ? x : Op("Cast", {x}, {{"to", ToOnnxType(dtype)}});
}

ValueId Decomposition::Reshape(ValueId x, const std::vector<int64_t>& shape) { return Op("Reshape", {x, List(shape)}); }

ValueId Decomposition::Transpose(ValueId x, const std::vector<int64_t>& permutation) {
  return Op("Transpose", {x}, {{"perm", permutation}});
}

ValueId Decomposition::Unsqueeze(ValueId x, const std::vector<int64_t>& axes) {
  return Op("Unsqueeze", {x, List(axes)});
}

ValueId Decomposition::Squeeze(ValueId x, const std::vector<int64_t>& axes) { return Op("Squeeze", {x, List(axes)}); }

ValueId Decomposition::Concat(Values parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : Op("Concat", std::move(parts), {{"axis", axis}});
}

Values Decomposition::Split(ValueId x, int64_t axis, const std::vector<int64_t>& sizes) {
  return Ops("Split", {x, List(sizes)}, sizes.size(), {{"axis", axis}});
}

ValueId Decomposition::Slice(ValueId x, int64_t axis, int64_t begin, int64_t end) {
  return Op("Slice", {x, List({begin}), List({end}), List({axis})});
}

ValueId Decomposition::ShapeOf(ValueId x, int64_t first, int64_t count) {
  return Slice(Op("Shape", {x}), 0, first, first + count);
}

ValueId Decomposition::Positions(ValueId x, int64_t axis) {
  const ValueId count = Squeeze(ShapeOf(x, AxisFromFront(axis, Rank(x)), 1), {0});
  return Op("Range", {Number(ir::DType::kInt64, 0), count, Number(ir::DType::kInt64, 1)});
}

ir::Size Decomposition::ReadSize(ValueId count, const ir::Size& max, int64_t min) {
  if (!status_.ok()) return 1;
  const ir::OpenSize size{writer_.unique(fmt::format("{}.count", node_.name)), min, max.max()};
  writer_.graph.sizes.push_back(size);
  Op("ReadSize", {Reshape(count, {})}, {{"sizes", std::vector<std::string>{size.name}}}, kControlDomain);
  return ir::Size::Open(size);
}

std::optional<ir::Shape> Decomposition::ReadSizes(ValueId list) {
  const ElementExprs elements = status_.ok() && list != kAbsent ? writer_.graph.values[list].elements : nullptr;
  if (elements == nullptr) return std::nullopt;
  std::vector<std::optional<ValueEnds>> ends(elements->size());  // of those that the run reads
  ir::Shape sizes(elements->size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::optional<ir::Shape> known = SizesOf({&(*elements)[i], 1}, writer_.graph.sizes);
    if (known.has_value()) {
      sizes[i] = known->front();
      continue;
    }
    ends[i] = ValuesAtEnds((*elements)[i], writer_.graph.sizes);
    if (!ends[i].has_value() || ends[i]->largest < 0 || ends[i]->largest >= kDimensionMax) return std::nullopt;
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!ends[i].has_value()) continue;
    const ValueId element = Op("Gather", {list, Number(ir::DType::kInt64, static_cast<double>(i))});
    sizes[i] =
        ReadSize(Cast(element, ir::DType::kInt64), ends[i]->largest + 1, std::max<int64_t>(ends[i]->smallest - 1, 0));
  }
  return sizes;
}

ValueId Decomposition::SizeList(const ir::Shape& sizes) {
  return status_.ok() ? AddSizes(writer_.graph, "shape", sizes) : kAbsent;
}

}  // namespace hone::graph::decompose
