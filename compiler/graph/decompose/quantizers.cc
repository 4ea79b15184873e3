// SPDX-License-Identifier: Apache-2.0
// Rules for the operators that quantizers export under their own names: qonnx and brevitas (Quant, BipolarQuant,
// Trunc), and the integer networks of quantlib and Deeploy (RequantShift).
//
// All of them keep integers in tensors of floats, so that a network runs in f32. Sources: qonnx, docs/qonnx-custom-ops;
// Deeploy, TargetLibraries/Generic/src/RequantShift_*.c.
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "compiler/graph/decompose/attributes.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

// --- qonnx and brevitas.

// Rounds as an attribute rounding_mode says. UP and DOWN are away from zero and towards it; HALF_UP and HALF_DOWN round
// to the nearest integer, and halves away from zero and towards it.
ValueId RoundedByMode(Decomposition& b, ValueId x, std::string_view fallback) {
  const std::string mode = absl::AsciiStrToUpper(b.String("rounding_mode", fallback));
  const auto of_magnitude = [&](std::string_view op, double offset) {
    const ValueId magnitude = b.Op("Abs", {x});
    return b.Mul(b.Op("Sign", {x}), b.Op(op, {offset == 0 ? magnitude : b.Add(magnitude, b.Like(x, offset))}));
  };
  if (mode == "ROUND" || mode == "HALF_EVEN") return b.Op("Round", {x});
  if (mode == "CEIL") return b.Op("Ceil", {x});
  if (mode == "FLOOR") return b.Op("Floor", {x});
  if (mode == "UP") return of_magnitude("Ceil", 0);
  if (mode == "DOWN" || mode == "ROUND_TO_ZERO") return of_magnitude("Floor", 0);
  if (mode == "HALF_UP") return of_magnitude("Floor", 0.5);
  if (mode == "HALF_DOWN") return of_magnitude("Ceil", -0.5);
  b.Fail(Unsupported(fmt::format("rounding_mode '{}' is not supported", mode)));
  return kAbsent;
}

// Returns the numbers of bits in input i, in its shape; the values must be known.
std::vector<double> ReadBits(Decomposition& b, size_t i) {
  if (auto bits = b.Known(b.Input(i)); bits && !bits->empty()) return *std::move(bits);
  b.Fail(absl::InvalidArgumentError(OpArgs::NotConstantMessage(i)));
  return {8};
}

// Returns the tensor of input i's shape whose elements are `function` of its numbers of bits, of the type of x.
template <typename Function>
ValueId OfBits(Decomposition& b, ValueId x, size_t i, const Function& function) {
  std::vector<double> numbers = ReadBits(b, i);
  for (double& number : numbers) number = function(number);
  if (!b.status().ok()) return kAbsent;
  std::vector<int64_t> shape;
  for (size_t d = 0; d < b.Rank(b.Input(i)); ++d) shape.push_back(b.Extent(b.Input(i), static_cast<int64_t>(d)));
  return b.Tensor(b.ElementType(x), shape, numbers);
}

// Clips to the integers of this many bits (input i), as attributes signed and narrow say.
ValueId ClippedToBits(Decomposition& b, ValueId x, size_t i) {
  const bool is_signed = b.Int("signed", 1) != 0, narrow = b.Int("narrow", 0) != 0;
  const ValueId lowest =
      OfBits(b, x, i, [&](double bits) { return is_signed ? -std::exp2(bits - 1) + (narrow ? 1 : 0) : 0.0; });
  const ValueId highest = OfBits(
      b, x, i, [&](double bits) { return is_signed ? std::exp2(bits - 1) - 1 : std::exp2(bits) - (narrow ? 2 : 1); });
  return b.Op("Max", {b.Op("Min", {x, highest}), lowest});
}

// 1 where x is not negative, else -1.
ValueId Bipolar(Decomposition& b, ValueId x) {
  return b.Op("Where", {b.Op("GreaterOrEqual", {x, b.Like(x, 0)}), b.Like(x, 1), b.Like(x, -1)});
}

// Inputs: x, scale, zero point, number of bits. One signed bit stands for -1 and 1.
absl::StatusOr<Values> IntQuant(Decomposition& b) {
  const ValueId scale = b.Input(1), zero = b.Input(2);
  ValueId x = b.Add(b.Div(b.Input(0), scale), zero);
  const std::vector<double> bits = ReadBits(b, 3);
  if (bits.size() == 1 && bits[0] == 1 && b.Int("signed", 1) != 0) {
    x = Bipolar(b, x);
  } else {
    x = RoundedByMode(b, ClippedToBits(b, x, 3), "ROUND");
  }
  return Values{b.Mul(b.Sub(x, zero), scale)};
}

// Inputs: x, scale.
absl::StatusOr<Values> BipolarQuant(Decomposition& b) { return Values{b.Mul(Bipolar(b, b.Input(0)), b.Input(1))}; }

// Drops low bits. Inputs of version 1: x, scale, zero point, bits before, bits after; the result is in units of scale.
// Inputs of version 2: x, scale, zero point, bits before, scale after (scale times a power of two), bits after.
absl::StatusOr<Values> Trunc(Decomposition& b) {
  const ValueId x = b.Input(0), scale = b.Input(1), zero = b.Input(2);
  const ValueId integers = b.Op("Round", {b.Add(b.Div(x, scale), zero)});
  if (!b.Has(5)) {
    const ValueId before = OfBits(b, x, 3, [](double bits) { return std::exp2(bits); });
    const ValueId after = OfBits(b, x, 4, [](double bits) { return std::exp2(bits); });
    const ValueId kept = RoundedByMode(b, b.Div(integers, b.Div(before, after)), "FLOOR");
    return Values{b.Mul(b.Sub(kept, zero), scale)};
  }
  // 2 to the power of the rounded logarithm of the ratio of the scales
  const ValueId ratio = b.Op("Log", {b.Div(b.Input(4), scale)});
  const ValueId exponent = b.Op("Round", {b.Div(ratio, b.Like(x, std::log(2.0)))});
  const ValueId step = b.Op("Round", {b.Op("Pow", {b.Like(x, 2), exponent})});
  const ValueId kept = RoundedByMode(b, ClippedToBits(b, b.Div(integers, step), 5), "FLOOR");
  return Values{b.Mul(b.Sub(kept, b.Div(zero, step)), b.Input(4))};
}

constexpr Row kQonnxRows[] = {
    {"BipolarQuant", BipolarQuant, 2},
    {"IntQuant", IntQuant, 4},
    {"Quant", IntQuant, 4},
    {"Trunc", Trunc, 5},
};

// --- quantlib and Deeploy.

// Returns an attribute that is an integer, a float, or a tensor or list with one number.
double NumberAttribute(Decomposition& b, const std::string& name, double fallback) {
  auto it = b.node().attributes.find(name);
  if (it == b.node().attributes.end()) return fallback;
  if (const auto* integer = std::get_if<int64_t>(&it->second)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&it->second)) return *number;
  if (const Constant* tensor = FindTensorAttribute(b, name); tensor != nullptr && tensor->type.elements() == 1) {
    return NumbersOf(*tensor)[0];
  }
  b.Fail(Malformed(fmt::format("attribute '{}' must be one number", name)));
  return fallback;
}

// One number per channel of x, as a tensor that broadcasts to x.
ValueId PerChannel(Decomposition& b, ValueId numbers, ValueId x) {
  if (b.Rank(numbers) != 1 || b.Rank(x) < 3) return numbers;
  std::vector<int64_t> axes;
  for (size_t d = 2; d < b.Rank(x); ++d) axes.push_back(static_cast<int64_t>(d) - 1);
  return b.Unsqueeze(numbers, axes);
}

// y = clip(floor((x * mul + add) / div + 1/2)): halves round up. Inputs: x, mul, add, all with integral values.
// Attributes: div, a power of two; n_levels_out (or n_levels), the number of values of y; signed. The result has the
// type of x. It is computed in f64, in which all integers of the formula are exact.
absl::StatusOr<Values> RequantShift(Decomposition& b) {
  const ValueId x = b.Input(0);
  const double div = NumberAttribute(b, "div", 1);
  const double levels = NumberAttribute(b, "n_levels_out", NumberAttribute(b, "n_levels", 256));
  const bool is_signed = NumberAttribute(b, "signed", 0) != 0;
  const auto wide = [&](ValueId value) { return b.Cast(PerChannel(b, value, x), DType::kFloat64); };
  if (!(div >= 1)) return Malformed(fmt::format("attribute 'div' is {}; it must be at least 1", div));
  const ValueId offset = b.Add(wide(b.Input(2)), b.Number(DType::kFloat64, std::floor(div / 2)));
  const ValueId sum = b.Add(b.Mul(b.Cast(x, DType::kFloat64), wide(b.Input(1))), offset);
  const ValueId y = b.Op("Floor", {b.Mul(sum, b.Number(DType::kFloat64, 1 / div))});
  const double lowest = is_signed ? -std::floor(levels / 2) : 0;
  const ValueId clipped = b.Op("Clip", {y, b.Like(y, lowest), b.Like(y, lowest + levels - 1)});
  return Values{b.Cast(clipped, b.ElementType(x))};
}

constexpr Row kRequantRows[] = {{"RequantShift", RequantShift, 3}};

}  // namespace

std::span<const Row> QonnxRows() { return kQonnxRows; }
std::span<const Row> RequantRows() { return kRequantRows; }

}  // namespace hone::graph::decompose
