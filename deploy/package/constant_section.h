// SPDX-License-Identifier: Apache-2.0
// The constants section while it is laid out: where each constant goes. Equal bytes are stored once, over all programs.
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
  // Where in the section the bytes are, a multiple of kTensorAlignment. They are not copied: they live as long as this.
  uint64_t Place(std::span<const uint8_t> bytes);

  // The whole section, padding included, to be written in this order.
  const std::vector<std::span<const uint8_t>>& pieces() const { return pieces_; }

 private:
  struct Placed {
    std::span<const uint8_t> bytes;
    uint64_t offset;
  };

  std::vector<std::span<const uint8_t>> pieces_;
  uint64_t end_ = 0;
  std::map<std::pair<uint64_t, size_t>, std::vector<Placed>> by_checksum_;  // checksum and size
};

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_CONSTANT_SECTION_H_
