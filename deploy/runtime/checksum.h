// SPDX-License-Identifier: Apache-2.0
// The 64-bit checksum of packages: fast (four independent multiply chains), streaming, equal on every platform.
//
// It detects accidental damage and does not protect against attackers. Each step is a bijection of its chain, so a
// change within one aligned 8-byte word is always detected. Other changes are missed with a probability of about 2^-64.
// Start with ChecksumOf.
#ifndef HONE_DEPLOY_RUNTIME_CHECKSUM_H_
#define HONE_DEPLOY_RUNTIME_CHECKSUM_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "deploy/runtime/package_format.h"

namespace hone::package {

class Checksum {
 public:
  // Appends bytes. The value depends on the bytes only, not on how they are divided into calls.
  void Update(std::span<const uint8_t> bytes) {
    total_ += bytes.size();
    if (held_ > 0) {
      const size_t take = bytes.size() < kBlock - held_ ? bytes.size() : kBlock - held_;
      std::memcpy(tail_ + held_, bytes.data(), take);
      held_ += take;
      bytes = bytes.subspan(take);
      if (held_ < kBlock) return;
      Absorb(tail_);
      held_ = 0;
    }
    for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock)) Absorb(bytes.data());
    if (!bytes.empty()) std::memcpy(tail_, bytes.data(), bytes.size());
    held_ = bytes.size();
  }

  // The checksum of all bytes so far. Update may continue afterwards.
  uint64_t Value() const {
    Checksum padded = *this;
    if (held_ > 0) {
      std::memset(padded.tail_ + held_, 0, kBlock - held_);
      padded.Absorb(padded.tail_);
    }
    uint64_t hash = total_ * kOdd1;  // the length, so that appended zeros change the value
    for (const uint64_t chain : padded.chains_) hash = std::rotl(hash ^ (chain * kOdd2), 29) * kOdd1;
    hash ^= hash >> 32;
    hash *= kOdd2;
    return hash ^ (hash >> 29);
  }

 private:
  static constexpr size_t kBlock = 32;
  static constexpr uint64_t kOdd1 = 0x9e3779b97f4a7c15ULL;
  static constexpr uint64_t kOdd2 = 0xd1b54a32d192ed03ULL;

  void Absorb(const uint8_t* block) {
    for (int i = 0; i < 4; ++i) {
      uint64_t word;
      std::memcpy(&word, block + 8 * i, 8);
      chains_[i] = std::rotl(chains_[i] + word * kOdd2, 31) * kOdd1;
    }
  }

  uint64_t chains_[4] = {1, 2, 3, 4};
  uint8_t tail_[kBlock] = {};
  size_t held_ = 0;     // bytes in tail_, fewer than a block
  uint64_t total_ = 0;  // bytes of all Updates
};

inline uint64_t ChecksumOf(std::span<const uint8_t> bytes) {
  Checksum checksum;
  checksum.Update(bytes);
  return checksum.Value();
}

// The correct value of FileHeader::checksum. The value in `header.checksum` is ignored.
inline uint64_t HeaderChecksum(FileHeader header, std::span<const SectionEntry> sections) {
  header.checksum = 0;
  Checksum checksum;
  checksum.Update({reinterpret_cast<const uint8_t*>(&header), sizeof header});
  checksum.Update({reinterpret_cast<const uint8_t*>(sections.data()), sections.size_bytes()});
  return checksum.Value();
}

}  // namespace hone::package

#endif  // HONE_DEPLOY_RUNTIME_CHECKSUM_H_
