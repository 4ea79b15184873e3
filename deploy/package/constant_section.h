// SPDX-License-Identifier: Apache-2.0
// The layout of the constants section: the offset of each constant. Equal bytes are stored once for all programs.
#ifndef HONE_DEPLOY_PACKAGE_CONSTANT_SECTION_H_
#define HONE_DEPLOY_PACKAGE_CONSTANT_SECTION_H_

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace hone::package {

class ConstantSection {
 public:
  // Adds a constant, unless equal bytes are there. Returns its offset in the section, a multiple of kTensorAlignment.
  // The bytes are not copied: they must live as long as this object.
  uint64_t Place(std::span<const uint8_t> bytes);

  // The bytes of the section in order, padding included. Valid until the next Place.
  const std::vector<std::span<const uint8_t>>& pieces() const { return pieces_; }

 private:
  struct Placed {
    std::span<const uint8_t> bytes;
    uint64_t offset;
  };

  std::vector<std::span<const uint8_t>> pieces_;
  uint64_t end_ = 0;                                                        // bytes so far, padded to kTensorAlignment
  std::map<std::pair<uint64_t, size_t>, std::vector<Placed>> by_checksum_;  // by checksum and size
};

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_CONSTANT_SECTION_H_
