// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/operations.h"

#include <algorithm>

#include "tests/ptx/values.h"

namespace hone::ptx {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;
template <typename T>
constexpr uint64_t kBits = 8 * sizeof(T);
__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

// Integers that are wide enough for every product.
template <typename T>
using WideOf = std::conditional_t<std::is_signed_v<T>, Wide, UnsignedWide>;

// Operations whose low bits do not depend on the sign use 64 bits of both operands; the result is truncated.
#define HONE_PTX_LOW_BITS(Name, expression)                             \
  template <typename T>                                                 \
  void Name(const Instruction& i, uint64_t* s) {                        \
    [[maybe_unused]] const uint64_t a = s[i.a], b = s[i.b], c = s[i.c]; \
    s[i.to] = static_cast<Unsigned<T>>(expression);                     \
  }
// Operations whose operands have the type of the instruction.
#define HONE_PTX_WHOLE(Name, expression)                                                                   \
  template <typename T>                                                                                    \
  void Name(const Instruction& i, uint64_t* s) {                                                           \
    [[maybe_unused]] const T a = Slot<T>::Get(s[i.a]), b = Slot<T>::Get(s[i.b]), c = Slot<T>::Get(s[i.c]); \
    s[i.to] = static_cast<Unsigned<T>>(expression);                                                        \
  }

HONE_PTX_LOW_BITS(Add, a + b)
HONE_PTX_LOW_BITS(Subtract, a - b)
HONE_PTX_LOW_BITS(Multiply, a* b)
HONE_PTX_LOW_BITS(MultiplyAdd, a* b + c)
HONE_PTX_LOW_BITS(And, a& b)
HONE_PTX_LOW_BITS(Or, a | b)
HONE_PTX_LOW_BITS(Xor, a ^ b)
HONE_PTX_LOW_BITS(Not, ~a)
HONE_PTX_LOW_BITS(Negate, -a)
HONE_PTX_WHOLE(LogicalNot, a == 0 ? 1 : 0)
HONE_PTX_WHOLE(Least, std::min(a, b))
HONE_PTX_WHOLE(Most, std::max(a, b))
HONE_PTX_WHOLE(Magnitude, a < 0 ? -static_cast<Unsigned<T>>(a) : static_cast<Unsigned<T>>(a))
HONE_PTX_WHOLE(MultiplyHigh, (WideOf<T>(a) * WideOf<T>(b)) >> kBits<T>)
HONE_PTX_WHOLE(MultiplyAddHigh, ((WideOf<T>(a) * WideOf<T>(b)) >> kBits<T>)+WideOf<T>(c))
HONE_PTX_WHOLE(CountOnes, std::popcount(static_cast<Unsigned<T>>(a)))
HONE_PTX_WHOLE(CountZeros, std::countl_zero(static_cast<Unsigned<T>>(a)))
// PTX does not define a division by zero; here all bits of the result are 1.
HONE_PTX_WHOLE(Divide, b == 0 ? WideOf<T>(-1) : WideOf<T>(a) / WideOf<T>(b))
HONE_PTX_WHOLE(Remainder, b == 0 ? WideOf<T>(-1) : WideOf<T>(a) % WideOf<T>(b))

#undef HONE_PTX_LOW_BITS
#undef HONE_PTX_WHOLE

// The type with twice as many bits.
template <typename T>
void MultiplyWide(const Instruction& i, uint64_t* s) {
  s[i.to] = static_cast<uint64_t>(Slot<T>::Get(s[i.a])) * static_cast<uint64_t>(Slot<T>::Get(s[i.b]));
  if constexpr (sizeof(T) == 2) s[i.to] &= 0xffffffffU;
}
template <typename T>
void MultiplyAddWide(const Instruction& i, uint64_t* s) {
  s[i.to] = static_cast<uint64_t>(Slot<T>::Get(s[i.a])) * static_cast<uint64_t>(Slot<T>::Get(s[i.b])) + s[i.c];
  if constexpr (sizeof(T) == 2) s[i.to] &= 0xffffffffU;
}

// The count of a shift has 32 bits. Counts beyond the width act as the width.
template <typename T>
void ShiftLeft(const Instruction& i, uint64_t* s) {
  const uint64_t by = static_cast<uint32_t>(s[i.b]);
  s[i.to] = by >= kBits<T> ? 0 : static_cast<Unsigned<T>>(s[i.a] << by);
}
template <typename T>
void ShiftRight(const Instruction& i, uint64_t* s) {
  const uint64_t by = static_cast<uint32_t>(s[i.b]);
  const T a = Slot<T>::Get(s[i.a]);
  s[i.to] = by >= kBits<T> ? static_cast<Unsigned<T>>(a < 0 ? -1 : 0) : static_cast<Unsigned<T>>(a >> by);
}
template <bool kLeft, bool kClamps>
void FunnelShift(const Instruction& i, uint64_t* s) {
  const uint64_t both = s[i.b] << 32 | static_cast<uint32_t>(s[i.a]);
  const uint32_t asked = static_cast<uint32_t>(s[i.c]), by = kClamps ? std::min(asked, 32U) : asked & 31;
  s[i.to] = static_cast<uint32_t>(kLeft ? both << by >> 32 : both >> by);
}

template <typename T>
void ExtractField(const Instruction& i, uint64_t* s) {
  const uint64_t first = s[i.b] & 0xff, count = s[i.c] & 0xff, bits = kBits<T>;
  const T a = Slot<T>::Get(s[i.a]);
  const bool negative = std::is_signed_v<T> && count > 0 &&
                        (static_cast<Unsigned<T>>(a) >> std::min(first + count - 1, bits - 1) & 1) != 0;
  Unsigned<T> field = first >= bits ? 0 : static_cast<Unsigned<T>>(a) >> first;
  const uint64_t there = first >= bits ? 0 : std::min(count, bits - first);
  if (there < bits) {
    const Unsigned<T> mask = static_cast<Unsigned<T>>((Unsigned<T>{1} << there) - 1);
    field = negative ? field | static_cast<Unsigned<T>>(~mask) : field & mask;
  }
  s[i.to] = field;
}
template <typename T>
void InsertField(const Instruction& i, uint64_t* s) {  // of `also_to`, whose slot is read, the count
  const uint64_t first = s[i.c] & 0xff, count = s[i.also_to] & 0xff, bits = kBits<T>;
  const T a = static_cast<T>(s[i.a]), b = static_cast<T>(s[i.b]);
  if (first >= bits || count == 0) {
    s[i.to] = b;
    return;
  }
  const T mask = static_cast<T>((count >= bits ? ~T{0} : static_cast<T>((T{1} << count) - 1)) << first);
  s[i.to] = static_cast<T>((static_cast<T>(a << first) & mask) | (b & ~mask));
}

void Permute(const Instruction& i, uint64_t* s) {
  const uint64_t both = s[i.b] << 32 | static_cast<uint32_t>(s[i.a]), selector = s[i.c];
  uint64_t result = 0;
  for (int byte = 0; byte < 4; ++byte) {
    const uint64_t pick = selector >> (4 * byte) & 15;
    uint64_t value = both >> (8 * (pick & 7)) & 0xff;
    if ((pick & 8) != 0) value = (value & 0x80) != 0 ? 0xff : 0;
    result |= value << (8 * byte);
  }
  s[i.to] = result;
}

void Reverse(const Instruction& i, uint64_t* s) {
  uint64_t result = 0;
  for (int bit = 0; bit < 32; ++bit) result |= (s[i.a] >> bit & 1) << (31 - bit);
  s[i.to] = result;
}

template <typename T>
void Move(const Instruction& i, uint64_t* s) {
  s[i.to] = static_cast<T>(s[i.a]);
}
void MovePredicate(const Instruction& i, uint64_t* s) { s[i.to] = s[i.a] & 1; }
void NotPredicate(const Instruction& i, uint64_t* s) { s[i.to] = ~s[i.a] & 1; }
void Select(const Instruction& i, uint64_t* s) { s[i.to] = ((s[i.c] & 1) != 0) != i.negated ? s[i.a] : s[i.b]; }
template <typename T>
void SelectNotNegative(const Instruction& i, uint64_t* s) {
  s[i.to] = Slot<T>::Get(s[i.c]) >= 0 ? s[i.a] : s[i.b];
}

// On both 16-bit halves of a register.
struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
template <bool kLeast>
struct IntExtreme {
  template <typename T>
  T operator()(T a, T b) const {
    return kLeast ? std::min(a, b) : std::max(a, b);
  }
};
template <typename T>
void AddPairs(Operations& all, const std::string& type) {
  all["add" + type] = {Two<Pair<T>, Sum>, 2};
  all["min" + type] = {Two<Pair<T>, IntExtreme<true>>, 2};
  all["max" + type] = {Two<Pair<T>, IntExtreme<false>>, 2};
}

template <typename T>
void AddBits(Operations& all, const std::string& bits) {
  const std::string b = ".b" + bits;
  all["and" + b] = {And<T>, 2};
  all["or" + b] = {Or<T>, 2};
  all["xor" + b] = {Xor<T>, 2};
  all["not" + b] = {Not<T>, 1};
  all["cnot" + b] = {LogicalNot<T>, 1};
  all["shl" + b] = {ShiftLeft<T>, 2};
  all["shr" + b] = {ShiftRight<T>, 2};
  for (const char* type : {".b", ".u", ".s", ".f"}) {
    all["mov" + (type + bits)] = {Move<T>, 1};
    all["selp" + (type + bits)] = {Select, 3};
    all["slct" + (type + bits) + ".s32"] = {SelectNotNegative<int32_t>, 3};
    all["slct" + (type + bits) + ".f32"] = {SelectNotNegative<float>, 3};
  }
}

template <typename T>
void AddIntegers(Operations& all, const std::string& type) {
  all["add" + type] = {Add<T>, 2};
  all["sub" + type] = {Subtract<T>, 2};
  all["mul.lo" + type] = {Multiply<T>, 2};
  all["mul.hi" + type] = {MultiplyHigh<T>, 2};
  all["mad.lo" + type] = {MultiplyAdd<T>, 3};
  all["mad.hi" + type] = {MultiplyAddHigh<T>, 3};
  all["div" + type] = {Divide<T>, 2};
  all["rem" + type] = {Remainder<T>, 2};
  all["min" + type] = {Least<T>, 2};
  all["max" + type] = {Most<T>, 2};
  all["shr" + type] = {ShiftRight<T>, 2};
  if constexpr (std::is_signed_v<T>) {
    all["neg" + type] = {Negate<T>, 1};
    all["abs" + type] = {Magnitude<T>, 1};
  }
  if constexpr (sizeof(T) < 8) {
    all["mul.wide" + type] = {MultiplyWide<T>, 2};
    all["mad.wide" + type] = {MultiplyAddWide<T>, 3};
  }
  if constexpr (sizeof(T) > 2) all["bfe" + type] = {ExtractField<T>, 3};
}

Operations AllOperations() {
  Operations all;
  AddBits<uint16_t>(all, "16");
  AddBits<uint32_t>(all, "32");
  AddBits<uint64_t>(all, "64");
  AddIntegers<int16_t>(all, ".s16");
  AddIntegers<uint16_t>(all, ".u16");
  AddIntegers<int32_t>(all, ".s32");
  AddIntegers<uint32_t>(all, ".u32");
  AddIntegers<int64_t>(all, ".s64");
  AddIntegers<uint64_t>(all, ".u64");
  AddPairs<int16_t>(all, ".s16x2");
  AddPairs<uint16_t>(all, ".u16x2");
  all["bfi.b32"] = {InsertField<uint32_t>, 4};
  all["bfi.b64"] = {InsertField<uint64_t>, 4};
  all["popc.b32"] = {CountOnes<uint32_t>, 1};
  all["popc.b64"] = {CountOnes<uint64_t>, 1};
  all["clz.b32"] = {CountZeros<uint32_t>, 1};
  all["clz.b64"] = {CountZeros<uint64_t>, 1};
  all["brev.b32"] = {Reverse, 1};
  all["prmt.b32"] = {Permute, 3};
  all["shf.l.wrap.b32"] = {FunnelShift<true, false>, 3};
  all["shf.r.wrap.b32"] = {FunnelShift<false, false>, 3};
  all["shf.l.clamp.b32"] = {FunnelShift<true, true>, 3};
  all["shf.r.clamp.b32"] = {FunnelShift<false, true>, 3};
  all["and.pred"] = {And<uint8_t>, 2};
  all["or.pred"] = {Or<uint8_t>, 2};
  all["xor.pred"] = {Xor<uint8_t>, 2};
  all["not.pred"] = {NotPredicate, 1};
  all["mov.pred"] = {MovePredicate, 1};
  AddFloatOperations(&all);
  return all;
}

}  // namespace

const Operation* FindOperation(const std::string& name) {
  static const Operations all = AllOperations();
  const auto it = all.find(name);
  return it == all.end() ? nullptr : &it->second;
}

}  // namespace hone::ptx
