// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/constant_section.h"

#include <algorithm>

#include "deploy/package/manifest_builder.h"
#include "deploy/runtime/checksum.h"

namespace hone::package {

uint64_t ConstantSection::Place(std::span<const uint8_t> bytes) {
  static constexpr uint8_t kZeros[kTensorAlignment] = {};
  std::vector<Placed>& candidates = by_checksum_[{ChecksumOf(bytes), bytes.size()}];
  for (const Placed& placed : candidates) {
    if (placed.bytes.data() == bytes.data() || std::equal(bytes.begin(), bytes.end(), placed.bytes.begin())) {
      return placed.offset;
    }
  }
  candidates.push_back({bytes, end_});
  pieces_.push_back(bytes);
  const uint64_t offset = end_, used = end_ + bytes.size();
  end_ = AlignUp(used, kTensorAlignment);
  if (end_ > used) pieces_.emplace_back(kZeros, end_ - used);
  return offset;
}

}  // namespace hone::package
