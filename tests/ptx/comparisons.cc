// setp: two values are compared, and what comes of it may be combined with a predicate.
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

// kOrNan: holds, too, where one of them is NaN.
template <typename T, Relation kRelation, bool kOrNan>
void Set(const Instruction& i, uint64_t* s) {
  const auto a = Number<T>(s[i.a]), b = Number<T>(s[i.b]);
  const bool holds = Holds<kRelation>(a, b) || (kOrNan && (a != a || b != b));
  const bool c = ((s[i.c] & 1) != 0) != i.negated;
  const auto combined = [&](bool value) {
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
  };
  if (i.also_to != 0) s[i.also_to] = combined(!holds) ? 1 : 0;
  s[i.to] = combined(holds) ? 1 : 0;
}

template <typename T>
Compute Find(std::string_view relation) {
  if (relation == "eq") return Set<T, Relation::kEqual, false>;
  if (relation == "ne") return Set<T, Relation::kNotEqual, false>;
  if (relation == "lt") return Set<T, Relation::kLess, false>;
  if (relation == "le") return Set<T, Relation::kLessEqual, false>;
  if (relation == "gt") return Set<T, Relation::kGreater, false>;
  if (relation == "ge") return Set<T, Relation::kGreaterEqual, false>;
  if constexpr (std::is_integral_v<T>) {
    if (relation == "lo") return Set<T, Relation::kLess, false>;
    if (relation == "ls") return Set<T, Relation::kLessEqual, false>;
    if (relation == "hi") return Set<T, Relation::kGreater, false>;
    if (relation == "hs") return Set<T, Relation::kGreaterEqual, false>;
  } else {
    if (relation == "equ") return Set<T, Relation::kEqual, true>;
    if (relation == "neu") return Set<T, Relation::kNotEqual, true>;
    if (relation == "ltu") return Set<T, Relation::kLess, true>;
    if (relation == "leu") return Set<T, Relation::kLessEqual, true>;
    if (relation == "gtu") return Set<T, Relation::kGreater, true>;
    if (relation == "geu") return Set<T, Relation::kGreaterEqual, true>;
    if (relation == "num") return Set<T, Relation::kOrdered, false>;
    if (relation == "nan") return Set<T, Relation::kUnordered, false>;
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
