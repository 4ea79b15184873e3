// SPDX-License-Identifier: Apache-2.0
// Reads and writes a slot as a value of a PTX type.
#ifndef HONE_TESTS_PTX_VALUES_H_
#define HONE_TESTS_PTX_VALUES_H_

#include <bit>
#include <cstdint>
#include <type_traits>

#include "tests/ptx/numbers.h"

namespace hone::ptx {

struct F16 {};
struct Bf16 {};
struct FlushedF32 {};  // f32 of an instruction with .ftz

template <typename T>
struct Slot {  // of integers; the sign of a value does not fill the rest of the slot
  using Value = T;
  static T Get(uint64_t slot) { return static_cast<T>(slot); }
  static uint64_t Put(T value) { return static_cast<std::make_unsigned_t<T>>(value); }
};
template <>
struct Slot<float> {
  using Value = float;
  static float Get(uint64_t slot) { return std::bit_cast<float>(static_cast<uint32_t>(slot)); }
  static uint64_t Put(float value) { return std::bit_cast<uint32_t>(value); }
};
template <>
struct Slot<double> {
  using Value = double;
  static double Get(uint64_t slot) { return std::bit_cast<double>(slot); }
  static uint64_t Put(double value) { return std::bit_cast<uint64_t>(value); }
};
template <>
struct Slot<FlushedF32> {
  using Value = float;
  static float Get(uint64_t slot) { return Flush(Slot<float>::Get(slot)); }
  static uint64_t Put(float value) { return Slot<float>::Put(Flush(value)); }
};
template <>
struct Slot<F16> {
  using Value = Odd;
  static Odd Get(uint64_t slot) { return {FromF16(static_cast<uint16_t>(slot))}; }
  static uint64_t Put(Odd value) { return ToF16(value.value); }
};
template <>
struct Slot<Bf16> {
  using Value = Odd;
  static Odd Get(uint64_t slot) { return {FromBf16(static_cast<uint16_t>(slot))}; }
  static uint64_t Put(Odd value) { return ToBf16(value.value); }
};

// Two values of T in one register.
template <typename T>
struct Pair {};

inline float Plain(float x) { return x; }
inline double Plain(double x) { return x; }
inline double Plain(Odd x) { return x.value; }

// Applies `Do` to one, two or three operands; for a pair, to each half.
template <typename T, typename Do>
struct Apply {
  static uint64_t One(uint64_t a) { return Slot<T>::Put(Do()(Slot<T>::Get(a))); }
  static uint64_t Two(uint64_t a, uint64_t b) { return Slot<T>::Put(Do()(Slot<T>::Get(a), Slot<T>::Get(b))); }
  static uint64_t Three(uint64_t a, uint64_t b, uint64_t c) {
    return Slot<T>::Put(Do()(Slot<T>::Get(a), Slot<T>::Get(b), Slot<T>::Get(c)));
  }
};
template <typename T, typename Do>
struct Apply<Pair<T>, Do> {
  using Half = Apply<T, Do>;
  static uint64_t One(uint64_t a) { return Half::One(a) | Half::One(a >> 16) << 16; }
  static uint64_t Two(uint64_t a, uint64_t b) { return Half::Two(a, b) | Half::Two(a >> 16, b >> 16) << 16; }
  static uint64_t Three(uint64_t a, uint64_t b, uint64_t c) {
    return Half::Three(a, b, c) | Half::Three(a >> 16, b >> 16, c >> 16) << 16;
  }
};

template <typename T, typename Do>
void One(const Instruction& i, uint64_t* s) {
  s[i.to] = Apply<T, Do>::One(s[i.a]);
}
template <typename T, typename Do>
void Two(const Instruction& i, uint64_t* s) {
  s[i.to] = Apply<T, Do>::Two(s[i.a], s[i.b]);
}
template <typename T, typename Do>
void Three(const Instruction& i, uint64_t* s) {
  s[i.to] = Apply<T, Do>::Three(s[i.a], s[i.b], s[i.c]);
}

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_VALUES_H_
