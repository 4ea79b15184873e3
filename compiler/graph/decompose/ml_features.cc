// SPDX-License-Identifier: Apache-2.0
// Rules for the operators of ai.onnx.ml that prepare features: scaling, missing values, encodings, selections.
//
// Strings are not supported. Not here: the models (ml_linear.cc, ml_trees.cc).
#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/graph/decompose/attributes.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/ir/numeric.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

int64_t SizeOf(const std::vector<double>& numbers) { return static_cast<int64_t>(numbers.size()); }

// (x - offset) * scale as f32. Both attributes have one number, or one per feature.
absl::StatusOr<Values> Scaler(Decomposition& b) {
  const DType wide = b.ElementType(b.Input(0)) == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const std::vector<double> offset = b.Floats("offset", {0}), scale = b.Floats("scale", {1});
  const ValueId centered = b.Sub(b.Cast(b.Input(0), wide), b.Tensor(wide, {SizeOf(offset)}, offset));
  return Values{b.Cast(b.Mul(centered, b.Tensor(wide, {SizeOf(scale)}, scale)), DType::kFloat32)};
}

// Divides each row by its largest element, its sum of magnitudes or its length. A row whose divisor is 0 stays.
absl::StatusOr<Values> Normalizer(Decomposition& b) {
  const ValueId x = b.Cast(b.Input(0), DType::kFloat32);
  const std::string norm = b.String("norm", "MAX");
  const Attributes axes = {{"axes", std::vector<int64_t>{b.Rank(x) < 2 ? 0 : 1}}};
  const ValueId list = b.List({b.Rank(x) < 2 ? 0 : 1});
  ValueId divisor = kAbsent;
  if (norm == "MAX") {
    divisor = b.Op("ReduceMax", {x}, axes);
  } else if (norm == "L1") {
    divisor = b.Op("ReduceSum", {b.Op("Abs", {x}), list});
  } else if (norm == "L2") {
    divisor = b.Op("Sqrt", {b.Op("ReduceSum", {b.Mul(x, x), list})});
  } else {
    return Malformed(fmt::format("attribute norm is '{}'; it must be MAX, L1 or L2", norm));
  }
  const ValueId safe = b.Op("Where", {b.Op("Equal", {divisor, b.Like(x, 0)}), b.Like(x, 1), divisor});
  return Values{b.Div(x, safe)};
}

// Elements that equal replaced_value (NaN equals NaN) become imputed_value, one for all or one per feature.
absl::StatusOr<Values> Imputer(Decomposition& b) {
  const ValueId x = b.Input(0);
  const DType dtype = b.ElementType(x);
  ValueId imputed = kAbsent, missing = kAbsent;
  if (ir::IsFloat(dtype)) {
    const std::vector<double> values = b.Floats("imputed_value_floats", {});
    const double replaced = b.Float("replaced_value_float", 0);
    if (!values.empty()) imputed = b.Tensor(dtype, {SizeOf(values)}, values);
    missing = std::isnan(replaced) ? b.Op("IsNaN", {x}) : b.Op("Equal", {x, b.Like(x, replaced)});
  } else {
    const std::vector<int64_t> values = b.Ints("imputed_value_int64s", {});
    if (!values.empty()) imputed = b.Cast(b.List(values), dtype);
    missing = b.Op("Equal", {x, b.Cast(b.List({b.Int("replaced_value_int64", 0)}), dtype)});
  }
  if (imputed == kAbsent) return Malformed("attribute imputed_value_floats or imputed_value_int64s is missing");
  return Values{b.Op("Where", {missing, imputed, x})};
}

// 1 where x is above the threshold, else 0, in the type of x.
absl::StatusOr<Values> Binarizer(Decomposition& b) {
  const ValueId x = b.Input(0);
  const double threshold = b.Float("threshold", 0);
  ValueId above = kAbsent;
  if (ir::IsFloat(b.ElementType(x))) {
    above = b.Op("Greater", {x, b.Like(x, threshold)});
  } else {
    above = b.Op("Greater", {x, b.Like(x, std::floor(threshold))});
  }
  return Values{b.Cast(above, b.ElementType(x))};
}

// Elements of the last dimension; a vector counts as one row.
absl::StatusOr<Values> ArrayFeatureExtractor(Decomposition& b) {
  const ValueId x = b.Rank(b.Input(0)) == 1 ? b.Reshape(b.Input(0), {1, -1}) : b.Input(0);
  return Values{b.Op("Gather", {x, b.Reshape(b.Input(1), {-1})}, {{"axis", int64_t{-1}}})};
}

// Joins the columns of all inputs as f32. An input is cut or filled with 0 to the columns that inputdimensions states.
absl::StatusOr<Values> FeatureVectorizer(Decomposition& b) {
  const std::vector<int64_t> sizes = b.Ints("inputdimensions", {});
  if (sizes.size() != b.node().inputs.size() ||
      std::any_of(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; })) {
    return Malformed("attribute inputdimensions needs one number per input, none of them negative");
  }
  Values columns;
  for (size_t i = 0; i < sizes.size(); ++i) {
    ValueId x = b.Cast(b.Input(i), DType::kFloat32);
    if (b.Rank(x) == 1) x = b.Reshape(x, {1, -1});
    const int64_t given = b.Extent(x, 1);
    if (given > sizes[i]) x = b.Slice(x, 1, 0, sizes[i]);
    if (given < sizes[i]) x = b.Op("Pad", {x, b.List({0, 0, 0, sizes[i] - given})});
    columns.push_back(x);
  }
  return Values{b.Concat(std::move(columns), 1)};
}

// One more dimension, with a 1 at the place of the category. A value that is none of the categories gives zeros, also
// where attribute zeros is 0 and ONNX Runtime would fail.
absl::StatusOr<Values> OneHotEncoder(Decomposition& b) {
  const std::vector<int64_t> categories = b.Ints("cats_int64s", {});
  if (categories.empty())
    return Unsupported("attribute cats_int64s is missing; categories that are strings are not supported");
  const ValueId x = b.Unsqueeze(b.Cast(b.Input(0), DType::kInt64), {-1});
  return Values{b.Cast(b.Op("Equal", {x, b.List(categories)}), DType::kFloat32)};
}

// --- LabelEncoder: a table from numbers to numbers.

struct NumberList {
  DType dtype = DType::kInt64;
  std::vector<double> numbers = {};
  std::vector<int64_t> integers = {};  // the same numbers exactly, if the attribute has 64-bit integers; else empty
};

ValueId AsTensor(Decomposition& b, const NumberList& list) {
  return list.integers.empty() ? b.Tensor(list.dtype, {SizeOf(list.numbers)}, list.numbers) : b.List(list.integers);
}

// Reads attributes prefix + "int64s", prefix + "floats" or prefix + "tensor".
NumberList ReadNumberList(Decomposition& b, const std::string& prefix) {
  if (b.HasAttribute(prefix + "int64s")) {
    const std::vector<int64_t> integers = b.Ints(prefix + "int64s", {});
    return {DType::kInt64, {integers.begin(), integers.end()}, integers};
  }
  if (b.HasAttribute(prefix + "floats")) return {DType::kFloat32, b.Floats(prefix + "floats", {})};
  if (const Constant* tensor = FindTensorAttribute(b, prefix + "tensor")) {
    return {tensor->type.dtype, NumbersOf(*tensor)};
  }
  b.Fail(Unsupported(
      fmt::format("attribute {0}int64s, {0}floats or {0}tensor is missing; strings are not supported", prefix)));
  return {};
}

// Adds the value for elements that are no key.
void AddDefault(Decomposition& b, NumberList& values) {
  const std::vector<double> tensor = TensorAttribute(b, "default_tensor");
  const int64_t integer = tensor.empty() ? b.Int("default_int64", -1) : ir::FloatToInt(DType::kInt64, tensor[0]);
  if (!values.integers.empty()) values.integers.push_back(integer);
  if (!tensor.empty()) {
    values.numbers.push_back(tensor[0]);
  } else {
    values.numbers.push_back(ir::IsFloat(values.dtype) ? b.Float("default_float", -0.0) : static_cast<double>(integer));
  }
}

// Returns for each element of x the last position of an equal key. NaN equals NaN. Without an equal key, the position
// is the number of keys.
ValueId PositionOfKey(Decomposition& b, ValueId x, const NumberList& keys) {
  const int64_t count = SizeOf(keys.numbers);
  const auto [least, most] = std::minmax_element(keys.numbers.begin(), keys.numbers.end());
  const bool dense = *most - *least <= 4.0 * static_cast<double>(count) + 1024;
  if (ir::IsInt(keys.dtype) && dense && std::abs(*least) < std::exp2(52)) {
    // a table over the range of the keys, with a place at each end for what is outside
    std::vector<int64_t> places(static_cast<size_t>(*most - *least) + 3, count);
    for (size_t k = 0; k < keys.numbers.size(); ++k) {
      places[static_cast<size_t>(keys.numbers[k] - *least) + 1] = static_cast<int64_t>(k);
    }
    const ValueId wide = b.Cast(x, DType::kInt64);
    const ValueId inside = b.Op("Clip", {wide, b.Like(wide, *least - 1), b.Like(wide, *most + 1)});
    return b.Op("Gather", {b.List(places), b.Sub(inside, b.Like(wide, *least - 1))});
  }
  const ValueId column = b.Unsqueeze(x, {-1});
  ValueId equal = b.Op("Equal", {column, AsTensor(b, keys)});
  std::vector<double> are_nan;
  for (double key : keys.numbers) are_nan.push_back(std::isnan(key) ? 1 : 0);
  if (std::count(are_nan.begin(), are_nan.end(), 1.0) > 0) {
    const ValueId nan = b.Op("And", {b.Op("IsNaN", {column}), b.Tensor(DType::kBool, {count}, are_nan)});
    equal = b.Op("Or", {equal, nan});
  }
  std::vector<int64_t> places(keys.numbers.size());
  for (size_t k = 0; k < places.size(); ++k) places[k] = static_cast<int64_t>(k);
  const ValueId found = b.Op("Where", {equal, b.List(places), b.Number(DType::kInt64, -1)});
  const ValueId last = b.Op("ReduceMax", {found}, {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{0}}});
  return b.Op("Where", {b.Op("Less", {last, b.Like(last, 0)}), b.Like(last, static_cast<double>(count)), last});
}

absl::StatusOr<Values> LabelEncoder(Decomposition& b) {
  const NumberList keys = ReadNumberList(b, "keys_");
  NumberList values = ReadNumberList(b, "values_");
  if (!b.status().ok()) return b.status();
  if (keys.numbers.empty() || keys.numbers.size() != values.numbers.size()) {
    return Malformed("it must have as many values as keys, and at least one");
  }
  if (b.ElementType(b.Input(0)) != keys.dtype) {
    return Malformed(fmt::format("input 0 has type {}, and the keys {}; they must be the same",
                                 ir::Name(b.ElementType(b.Input(0))), ir::Name(keys.dtype)));
  }
  AddDefault(b, values);
  return Values{b.Op("Gather", {AsTensor(b, values), PositionOfKey(b, b.Input(0), keys)})};
}

absl::StatusOr<Values> RefuseMaps(Decomposition& b) {
  return Unsupported(
      fmt::format("{} makes maps from labels to scores, which are not supported; remove it: its input has the scores, "
                  "in the order of "
                  "the labels",
                  b.node().op));
}

constexpr Row kMlFeatureRows[] = {
    {"ArrayFeatureExtractor", ArrayFeatureExtractor, 2},
    {"Binarizer", Binarizer},
    {"FeatureVectorizer", FeatureVectorizer},
    {"Imputer", Imputer},
    {"LabelEncoder", LabelEncoder},
    {"Normalizer", Normalizer},
    {"OneHotEncoder", OneHotEncoder},
    {"Scaler", Scaler},
    {"ZipMap", RefuseMaps},
};

}  // namespace

std::span<const Row> MlFeatureRows() { return kMlFeatureRows; }

}  // namespace hone::graph::decompose
