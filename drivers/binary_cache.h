// SPDX-License-Identifier: Apache-2.0
// A BinaryCache keeps compiled programs in a folder between runs, so that a device's compiler compiles each source
// once.
//
// An entry is a file with its whole key and a checksum: a different key with the same hash, or a damaged entry, is a
// miss. Entries are written to a temporary file and renamed, so that readers in any process see whole entries only. If
// the folder becomes too large, the least recently used entries are removed. Start with Find and Store.
#ifndef HONE_DRIVERS_BINARY_CACHE_H_
#define HONE_DRIVERS_BINARY_CACHE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hone::drivers {

// Several threads, processes and containers may use one folder at a time. The folder must be trusted: binaries from it
// are loaded as code.
class BinaryCache {
 public:
  // With an empty path nothing is found and nothing is kept. bytes_max: limit on the size of all entries together.
  explicit BinaryCache(std::filesystem::path folder, uint64_t bytes_max = uint64_t{512} << 20)
      : folder_(std::move(folder)), bytes_max_(bytes_max) {}

  // The binary that was kept under `key`; nullopt if there is none. Notes that the entry was used, which sets the time
  // of its file. key: everything on which the binary depends.
  std::optional<std::string> Find(std::string_view key) const;
  // Writes an entry, and creates the folder if it is missing. Failures are ignored, and an entry larger than bytes_max
  // is not written: the next Find is a miss.
  void Store(std::string_view key, std::string_view binary) const;

 private:
  std::filesystem::path PathOf(std::string_view key) const;
  void EvictOldest(const std::filesystem::path& latest) const;

  std::filesystem::path folder_;
  uint64_t bytes_max_;
};

// The 64-bit FNV-1a hash: names entries and detects accidental damage. It does not protect against attackers.
uint64_t Checksum(std::string_view bytes);

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_BINARY_CACHE_H_
