// Compiled programs kept in a folder between runs, so that a device's compiler sees each source once.
//
// An entry holds its whole key, so that a key that differs is a miss and never a wrong program, and a checksum, so that
// a damaged entry is a miss too. Written to a file of its own and renamed: readers see whole entries, also from other
// processes. Nothing is ever removed.
#ifndef HONE_DRIVERS_BINARY_CACHE_H_
#define HONE_DRIVERS_BINARY_CACHE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace hone::drivers {

class BinaryCache {
 public:
  // An empty folder: nothing is found and nothing is kept.
  explicit BinaryCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // key: everything that the binary depends on.
  std::optional<std::string> Find(std::string_view key) const;
  // Makes the folder where it is absent. What cannot be written is only missed later.
  void Keep(std::string_view key, std::string_view binary) const;

 private:
  std::filesystem::path PathOf(std::string_view key) const;

  std::filesystem::path folder_;
};

// FNV-1a over 64 bits: tells entries apart and finds damage; no protection against intent.
uint64_t Checksum(std::string_view bytes);

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_BINARY_CACHE_H_
