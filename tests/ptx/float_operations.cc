// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "tests/ptx/operations.h"
#include "tests/ptx/values.h"

namespace hone::ptx {
namespace {

struct Add {
  template <typename V>
  V operator()(V a, V b) const {
    return a + b;
  }
};
struct Subtract {
  template <typename V>
  V operator()(V a, V b) const {
    return a - b;
  }
};
struct Multiply {
  template <typename V>
  V operator()(V a, V b) const {
    return a * b;
  }
};
struct MultiplyAdd {
  template <typename V>
  V operator()(V a, V b, V c) const {
    return Fma(a, b, c);
  }
};
struct Negate {
  template <typename V>
  V operator()(V a) const {
    return -a;
  }
};
struct Magnitude {
  template <typename V>
  V operator()(V a) const {
    return V{std::fabs(Plain(a))};
  }
};
struct CopySign {  // of a, to b
  template <typename V>
  V operator()(V a, V b) const {
    return V{std::copysign(b, a)};
  }
};
struct Divide {
  template <typename V>
  V operator()(V a, V b) const {
    return a / b;
  }
};

// If kNan, a NaN is the result; else the other operand is. -0 is less than +0.
template <bool kNan, bool kLeast>
struct Extreme {
  template <typename V>
  V operator()(V a, V b) const {
    const auto x = Plain(a), y = Plain(b);
    if (std::isnan(x) || std::isnan(y)) {
      if (kNan || (std::isnan(x) && std::isnan(y))) return V{Nan(x)};
      return std::isnan(x) ? b : a;
    }
    const bool a_is_less = x < y || (x == y && std::signbit(x));
    return a_is_less == kLeast ? a : b;
  }
  static float Nan(float) { return std::bit_cast<float>(0x7fffffffU); }
  static double Nan(double) { return std::bit_cast<double>(uint64_t{0x7fffffffffffffff}); }
};

// Functions that devices approximate are computed in f64, so their f32 results are correctly rounded almost always.
using Function = double (*)(double);
template <Function kFunction>
struct Call {
  template <typename V>
  V operator()(V a) const {
    return V{static_cast<decltype(Plain(a))>(kFunction(Plain(a)))};
  }
};
double Reciprocal(double x) { return 1 / x; }
double Root(double x) { return std::sqrt(x); }
double ReciprocalRoot(double x) { return 1 / std::sqrt(x); }
double PowerOfTwo(double x) { return std::exp2(x); }
double LogarithmToTwo(double x) { return std::log2(x); }
double Sine(double x) { return std::sin(x); }
double Cosine(double x) { return std::cos(x); }
double HyperbolicTangent(double x) { return std::tanh(x); }

// The first of two operands becomes the upper half.
template <typename T>
void ConvertTwo(const Instruction& i, uint64_t* s) {
  const Odd upper{Slot<float>::Get(s[i.a])}, lower{Slot<float>::Get(s[i.b])};
  s[i.to] = Slot<T>::Put(upper) << 16 | Slot<T>::Put(lower);
}

template <typename T>
void AddArithmetic(Operations& all, const std::string& type) {
  for (const char* rounding : {"", ".rn"}) {
    all["add" + std::string(rounding) + type] = {Two<T, Add>, 2};
    all["sub" + std::string(rounding) + type] = {Two<T, Subtract>, 2};
    all["mul" + std::string(rounding) + type] = {Two<T, Multiply>, 2};
  }
  all["fma.rn" + type] = {Three<T, MultiplyAdd>, 3};
  all["neg" + type] = {One<T, Negate>, 1};
  all["abs" + type] = {One<T, Magnitude>, 1};
  all["min" + type] = {Two<T, Extreme<false, true>>, 2};
  all["max" + type] = {Two<T, Extreme<false, false>>, 2};
}

template <typename T>
void AddNanExtremes(Operations& all, const std::string& type) {
  all["min.NaN" + type] = {Two<T, Extreme<true, true>>, 2};
  all["max.NaN" + type] = {Two<T, Extreme<true, false>>, 2};
}

template <typename T>
void AddDivision(Operations& all, const std::string& type) {
  all["div.rn" + type] = {Two<T, Divide>, 2};
  all["rcp.rn" + type] = {One<T, Call<Reciprocal>>, 1};
  all["sqrt.rn" + type] = {One<T, Call<Root>>, 1};
}

template <typename T>
void AddApproximations(Operations& all, const std::string& type) {
  all["div.approx" + type] = all["div.full" + type] = {Two<T, Divide>, 2};
  all["rcp.approx" + type] = {One<T, Call<Reciprocal>>, 1};
  all["sqrt.approx" + type] = {One<T, Call<Root>>, 1};
  all["rsqrt.approx" + type] = {One<T, Call<ReciprocalRoot>>, 1};
  all["ex2.approx" + type] = {One<T, Call<PowerOfTwo>>, 1};
  all["lg2.approx" + type] = {One<T, Call<LogarithmToTwo>>, 1};
  all["sin.approx" + type] = {One<T, Call<Sine>>, 1};
  all["cos.approx" + type] = {One<T, Call<Cosine>>, 1};
}

}  // namespace

void AddFloatOperations(Operations* operations) {
  Operations& all = *operations;
  AddArithmetic<float>(all, ".f32");
  AddArithmetic<FlushedF32>(all, ".ftz.f32");
  AddArithmetic<double>(all, ".f64");
  AddArithmetic<F16>(all, ".f16");
  AddArithmetic<Bf16>(all, ".bf16");
  AddArithmetic<Pair<F16>>(all, ".f16x2");
  AddArithmetic<Pair<Bf16>>(all, ".bf16x2");
  AddNanExtremes<float>(all, ".f32");
  AddNanExtremes<F16>(all, ".f16");
  AddNanExtremes<Bf16>(all, ".bf16");
  AddNanExtremes<Pair<F16>>(all, ".f16x2");
  AddNanExtremes<Pair<Bf16>>(all, ".bf16x2");
  AddDivision<float>(all, ".f32");
  AddDivision<FlushedF32>(all, ".ftz.f32");
  AddDivision<double>(all, ".f64");
  AddApproximations<float>(all, ".f32");
  AddApproximations<FlushedF32>(all, ".ftz.f32");
  all["tanh.approx.f32"] = {One<float, Call<HyperbolicTangent>>, 1};
  all["ex2.approx.f16"] = {One<F16, Call<PowerOfTwo>>, 1};
  all["tanh.approx.f16"] = {One<F16, Call<HyperbolicTangent>>, 1};
  all["cvt.rn.f16x2.f32"] = {ConvertTwo<F16>, 2};
  all["cvt.rn.bf16x2.f32"] = {ConvertTwo<Bf16>, 2};
  all["copysign.f32"] = {Two<float, CopySign>, 2};
  all["copysign.f64"] = {Two<double, CopySign>, 2};
}

}  // namespace hone::ptx
