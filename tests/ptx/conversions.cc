// SPDX-License-Identifier: Apache-2.0
// cvt: between all types, in all ways of rounding.
#include <array>
#include <limits>
#include <type_traits>
#include <vector>

#include "tests/ptx/names.h"
#include "tests/ptx/operations.h"
#include "tests/ptx/values.h"

namespace hone::ptx {
namespace {

template <typename T>
constexpr bool kIsFloat = !std::is_integral_v<T>;

template <typename T>
constexpr Format kFormatOf = kF32;
template <>
constexpr Format kFormatOf<F16> = kF16;
template <>
constexpr Format kFormatOf<Bf16> = kBf16;
template <>
constexpr Format kFormatOf<double> = kF64;

template <typename T>
long double FloatOf(uint64_t slot) {
  return Plain(Slot<T>::Get(slot));
}
template <typename T>
uint64_t FromFloat(long double x) {  // x is a value of T
  if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, Bf16>) {
    return Slot<T>::Put(Odd{static_cast<double>(x)});
  } else {
    return Slot<T>::Put(static_cast<typename Slot<T>::Value>(x));
  }
}

// A register may be wider than its value's type: the sign of a signed value fills it.
template <typename To>
uint64_t Widened(To x) {
  return static_cast<uint64_t>(x);
}

// Values out of range become the end of the range. NaN becomes 0, or, if either type has 64 bits, the integer whose
// highest bit alone is set.
template <typename To, typename From>
uint64_t FloatToInteger(long double x, Rounding rounding) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(x)) {
    const bool wide = sizeof(To) == 8 || std::is_same_v<From, double>;
    return wide ? Widened(static_cast<To>(uint64_t{1} << (8 * sizeof(To) - 1))) : 0;
  }
  const long double whole = RoundWhole(x, rounding);
  if (whole <= static_cast<long double>(Limits::min())) return Widened(Limits::min());
  if (whole >= static_cast<long double>(Limits::max())) return Widened(Limits::max());
  return Widened(static_cast<To>(whole));
}

template <typename To, typename From>
uint64_t IntegerToInteger(From x, bool saturates) {
  __extension__ using Wide = __int128;
  if (saturates) {
    const Wide low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max(), value = x;
    return Widened(static_cast<To>(value < low ? low : value > high ? high : value));
  }
  return Widened(static_cast<To>(x));
}

template <typename To, typename From>
void Convert(const Instruction& i, uint64_t* s) {
  if constexpr (!kIsFloat<To> && !kIsFloat<From>) {
    s[i.to] = IntegerToInteger<To>(Slot<From>::Get(s[i.a]), i.saturates);
  } else if constexpr (!kIsFloat<To>) {
    long double x = FloatOf<From>(s[i.a]);
    if (i.flushes) x = Flush(static_cast<float>(x));
    s[i.to] = FloatToInteger<To, From>(x, i.rounding);
  } else {
    long double x = 0;
    if constexpr (kIsFloat<From>) {
      x = FloatOf<From>(s[i.a]);
      if (i.flushes && std::is_same_v<From, float>) x = Flush(static_cast<float>(x));
    } else {
      x = Slot<From>::Get(s[i.a]);
    }
    // `negated` marks a rounding to whole numbers.
    if (i.negated) x = std::copysign(RoundWhole(x, i.rounding), x);
    x = i.negated ? x : RoundTo(kFormatOf<To>, x, i.rounding);
    if (i.saturates) x = !(x > 0) ? 0 : x > 1 ? 1 : x;
    s[i.to] = FromFloat<To>(x);
    if (i.flushes && std::is_same_v<To, float>) s[i.to] = Slot<FlushedF32>::Put(Slot<float>::Get(s[i.to]));
  }
}

constexpr std::array<std::string_view, 12> kTypes = {"u8",  "s8",  "u16", "s16",  "u32", "s32",
                                                     "u64", "s64", "f16", "bf16", "f32", "f64"};

template <typename To>
constexpr std::array<Compute, 12> kFromAll = {Convert<To, uint8_t>,  Convert<To, int8_t>,   Convert<To, uint16_t>,
                                              Convert<To, int16_t>,  Convert<To, uint32_t>, Convert<To, int32_t>,
                                              Convert<To, uint64_t>, Convert<To, int64_t>,  Convert<To, F16>,
                                              Convert<To, Bf16>,     Convert<To, float>,    Convert<To, double>};
constexpr std::array<std::array<Compute, 12>, 12> kConversions = {
    kFromAll<uint8_t>,  kFromAll<int8_t>,  kFromAll<uint16_t>, kFromAll<int16_t>, kFromAll<uint32_t>, kFromAll<int32_t>,
    kFromAll<uint64_t>, kFromAll<int64_t>, kFromAll<F16>,      kFromAll<Bf16>,    kFromAll<float>,    kFromAll<double>};

// Roundings as "rn"; as "rni", to whole numbers.
bool DecodeRounding(std::string_view part, Instruction* i, bool* whole) {
  if (part.size() < 2 || part[0] != 'r') return false;
  *whole = part.size() == 3 && part[2] == 'i';
  if (part.size() != (*whole ? 3U : 2U)) return false;
  switch (part[1]) {
    case 'n':
      i->rounding = Rounding::kNearest;
      return true;
    case 'z':
      i->rounding = Rounding::kZero;
      return true;
    case 'm':
      i->rounding = Rounding::kDown;
      return true;
    case 'p':
      i->rounding = Rounding::kUp;
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<Operation> DecodeConversion(std::string_view name, Instruction* instruction) {
  const std::vector<std::string_view> parts = PartsOf(name);
  if (parts.size() < 3 || parts[0] != "cvt") return std::nullopt;
  bool rounds = false, whole = false;
  for (size_t p = 1; p + 2 < parts.size(); ++p) {
    if (parts[p] == "sat") {
      instruction->saturates = true;
    } else if (parts[p] == "ftz") {
      instruction->flushes = true;
    } else if (DecodeRounding(parts[p], instruction, &whole)) {
      rounds = true;
    } else {
      return std::nullopt;
    }
  }
  const auto to = std::ranges::find(kTypes, parts[parts.size() - 2]), from = std::ranges::find(kTypes, parts.back());
  if (to == kTypes.end() || from == kTypes.end()) return std::nullopt;
  const bool to_float = to->find('f') != std::string_view::npos, from_float = from->find('f') != std::string_view::npos;
  // The modifiers that a conversion must have, and those that it must not have.
  if (to_float && !from_float && (!rounds || whole)) return std::nullopt;
  if (!to_float && from_float && !whole) return std::nullopt;
  if (!to_float && !from_float && rounds) return std::nullopt;
  instruction->negated = to_float && whole;
  return Operation{kConversions[to - kTypes.begin()][from - kTypes.begin()], 1};
}

}  // namespace hone::ptx
