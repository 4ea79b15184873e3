// SPDX-License-Identifier: Apache-2.0
// setp: compares two values. The result may be combined with a predicate.
#include <cmath>
#include <vector>

#include "tests/ptx/names.h"
#include "tests/ptx/operations.h"
#include "tests/ptx/values.h"

namespace hone::ptx {
namespace {

enum class Relation { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kOrdered, kUnordered };

template <Relation kRelation, typename V>
bool Holds(V a, V b) {
  switch (kRelation) {
    case Relation::kEqual:
      return a == b;
    case Relation::kNotEqual:
      return a < b || a > b;  // false for NaN
    case Relation::kLess:
      return a < b;
    case Relation::kLessEqual:
      return a <= b;
    case Relation::kGreater:
      return a > b;
    case Relation::kGreaterEqual:
      return a >= b;
    case Relation::kOrdered:
      return a == a && b == b;
    case Relation::kUnordered:
      return a != a || b != b;
  }
}

template <typename T>
auto Number(uint64_t slot) {
  if constexpr (std::is_integral_v<T>) {
    return Slot<T>::Get(slot);
  } else {
    return Plain(Slot<T>::Get(slot));
  }
}

bool Combined(const Instruction& i, bool value, uint64_t predicate) {
  const bool c = ((predicate & 1) != 0) != i.negated;
  switch (i.combine) {
    case Combine::kNone:
      return value;
    case Combine::kAnd:
      return value && c;
    case Combine::kOr:
      return value || c;
    case Combine::kXor:
      return value != c;
  }
  return value;
}

// kOrNan: also true if an operand is NaN.
template <typename T, Relation kRelation, bool kOrNan>
struct Comparison {
  static bool Holds(uint64_t first, uint64_t second) {
    const auto a = Number<T>(first), b = Number<T>(second);
    return ptx::Holds<kRelation>(a, b) || (kOrNan && (a != a || b != b));
  }
  static void Set(const Instruction& i, uint64_t* s) {
    const bool holds = Holds(s[i.a], s[i.b]);
    const uint64_t c = s[i.c];
    if (i.also_to != 0) s[i.also_to] = Combined(i, !holds, c) ? 1 : 0;
    s[i.to] = Combined(i, holds, c) ? 1 : 0;
  }
};
// Each half gives a predicate of its own, the lower half the first.
template <typename T, Relation kRelation, bool kOrNan>
struct Comparison<Pair<T>, kRelation, kOrNan> {
  static void Set(const Instruction& i, uint64_t* s) {
    using Half = Comparison<T, kRelation, kOrNan>;
    const uint64_t a = s[i.a], b = s[i.b], c = s[i.c];
    s[i.to] = Combined(i, Half::Holds(a, b), c) ? 1 : 0;
    s[i.also_to] = Combined(i, Half::Holds(a >> 16, b >> 16), c) ? 1 : 0;
  }
};

template <typename T>
Compute Find(std::string_view relation) {
  if (relation == "eq") return Comparison<T, Relation::kEqual, false>::Set;
  if (relation == "ne") return Comparison<T, Relation::kNotEqual, false>::Set;
  if (relation == "lt") return Comparison<T, Relation::kLess, false>::Set;
  if (relation == "le") return Comparison<T, Relation::kLessEqual, false>::Set;
  if (relation == "gt") return Comparison<T, Relation::kGreater, false>::Set;
  if (relation == "ge") return Comparison<T, Relation::kGreaterEqual, false>::Set;
  if constexpr (std::is_integral_v<T>) {
    if (relation == "lo") return Comparison<T, Relation::kLess, false>::Set;
    if (relation == "ls") return Comparison<T, Relation::kLessEqual, false>::Set;
    if (relation == "hi") return Comparison<T, Relation::kGreater, false>::Set;
    if (relation == "hs") return Comparison<T, Relation::kGreaterEqual, false>::Set;
  } else {
    if (relation == "equ") return Comparison<T, Relation::kEqual, true>::Set;
    if (relation == "neu") return Comparison<T, Relation::kNotEqual, true>::Set;
    if (relation == "ltu") return Comparison<T, Relation::kLess, true>::Set;
    if (relation == "leu") return Comparison<T, Relation::kLessEqual, true>::Set;
    if (relation == "gtu") return Comparison<T, Relation::kGreater, true>::Set;
    if (relation == "geu") return Comparison<T, Relation::kGreaterEqual, true>::Set;
    if (relation == "num") return Comparison<T, Relation::kOrdered, false>::Set;
    if (relation == "nan") return Comparison<T, Relation::kUnordered, false>::Set;
  }
  return nullptr;
}

Compute Find(std::string_view relation, std::string_view type, bool flushes) {
  if (flushes && type != "f32") return nullptr;
  if (type == "s16") return Find<int16_t>(relation);
  if (type == "u16" || type == "b16") return Find<uint16_t>(relation);
  if (type == "s32") return Find<int32_t>(relation);
  if (type == "u32" || type == "b32") return Find<uint32_t>(relation);
  if (type == "s64") return Find<int64_t>(relation);
  if (type == "u64" || type == "b64") return Find<uint64_t>(relation);
  if (type == "f16") return Find<F16>(relation);
  if (type == "bf16") return Find<Bf16>(relation);
  if (type == "f16x2") return Find<Pair<F16>>(relation);
  if (type == "bf16x2") return Find<Pair<Bf16>>(relation);
  if (type == "f32") return flushes ? Find<FlushedF32>(relation) : Find<float>(relation);
  if (type == "f64") return Find<double>(relation);
  return nullptr;
}

}  // namespace

std::optional<Operation> DecodeComparison(std::string_view name, Instruction* instruction) {
  const std::vector<std::string_view> parts = PartsOf(name);
  if (parts.size() < 3 || parts[0] != "setp") return std::nullopt;
  bool flushes = false;
  for (size_t p = 2; p + 1 < parts.size(); ++p) {
    if (parts[p] == "and") {
      instruction->combine = Combine::kAnd;
    } else if (parts[p] == "or") {
      instruction->combine = Combine::kOr;
    } else if (parts[p] == "xor") {
      instruction->combine = Combine::kXor;
    } else if (parts[p] == "ftz") {
      flushes = true;
    } else {
      return std::nullopt;
    }
  }
  const Compute compute = Find(parts[1], parts.back(), flushes);
  if (compute == nullptr) return std::nullopt;
  return Operation{compute, instruction->combine == Combine::kNone ? 2 : 3};
}

}  // namespace hone::ptx
