// SPDX-License-Identifier: Apache-2.0
// A small seeded random generator with the same sequence on every platform and C++ library, unlike the distributions of
// the C++ library.
//
// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). Not for secrets.
#ifndef HONE_BASE_RANDOM_H_
#define HONE_BASE_RANDOM_H_

#include <cstdint>

namespace hone {

// The upper 64 bits of the product, by products of 32 bits, for machines that have no wider integers.
constexpr uint64_t HighHalfByParts(uint64_t a, uint64_t b) {
  constexpr uint64_t kLow = 0xffff'ffff;
  const uint64_t a_low = a & kLow, a_high = a >> 32, b_low = b & kLow, b_high = b >> 32;
  const uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  const uint64_t carry = (middle & kLow) + a_low * b_high;
  return a_high * b_high + (middle >> 32) + (carry >> 32);
}
// The upper 64 bits of the product.
constexpr uint64_t HighHalf(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#else
  return HighHalfByParts(a, b);
#endif
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // The n-th generator of a seed. The sequences of different n are independent. Seeding generators directly with
  // hand-picked seeds is worse: two seeds that differ by a multiple of the step in Next() give the same sequence,
  // shifted.
  static Random Nth(uint64_t seed, uint64_t n) { return Random(Random(seed + n).Next()); }
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // Uniform in [0, n); n > 0. The bias of the multiply-shift is below n / 2^64.
  int64_t Below(int64_t n) { return static_cast<int64_t>(HighHalf(Next(), static_cast<uint64_t>(n))); }
  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace hone

#endif  // HONE_BASE_RANDOM_H_
