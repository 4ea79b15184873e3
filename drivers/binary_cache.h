// SPDX-License-Identifier: Apache-2.0
// Compiled programs kept in a folder between runs, so that a device's compiler sees each source once.
//
// An entry holds its whole key, so that a key that differs is a miss and never a wrong program, and a checksum, so that
// a damaged entry is a miss too. Written to a file of its own and renamed: readers see whole entries, also from other
// processes. What the folder may not hold any more goes: first what was not used for longest.
#ifndef HONE_DRIVERS_BINARY_CACHE_H_
#define HONE_DRIVERS_BINARY_CACHE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hone::drivers {

class BinaryCache {
 public:
  // An empty folder: nothing is found and nothing is kept. most_bytes: of all entries together.
  explicit BinaryCache(std::filesystem::path folder, uint64_t most_bytes = uint64_t{512} << 20)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // key: everything that the binary depends on.
  std::optional<std::string> Find(std::string_view key) const;
  // Makes the folder where it is absent. What cannot be written is only missed later.
  void Keep(std::string_view key, std::string_view binary) const;

 private:
  std::filesystem::path PathOf(std::string_view key) const;
  void MakeRoom(const std::filesystem::path& latest) const;

  std::filesystem::path folder_;
  uint64_t most_bytes_;
};

// FNV-1a over 64 bits: tells entries apart and finds damage; no protection against intent.
uint64_t Checksum(std::string_view bytes);

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_BINARY_CACHE_H_
