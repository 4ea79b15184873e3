// SPDX-License-Identifier: Apache-2.0
#include "drivers/binary_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "base/resource_limit.h"

namespace hone::drivers {
namespace {

namespace fs = std::filesystem;

// The start of an entry's file. The key and the binary follow and end with the file. checksum: of both.
struct Header {
  char magic[8] = {'H', 'O', 'N', 'E', 'B', 'I', 'N', '1'};
  uint64_t key_bytes = 0, binary_bytes = 0, checksum = 0;
};

}  // namespace

uint64_t Checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

fs::path BinaryCache::PathOf(std::string_view key) const {
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.bin", static_cast<unsigned long long>(Checksum(key)));
  return folder_ / name;
}

std::optional<std::string> BinaryCache::Find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(PathOf(key), std::ios::binary);
  const std::string entry{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Header header;
  const Header expected;
  if (entry.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, entry.data(), sizeof header);
  const std::string_view content = std::string_view(entry).substr(sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0) return std::nullopt;
  if (header.key_bytes != key.size() || content.size() < key.size()) return std::nullopt;
  if (header.binary_bytes != content.size() - key.size() || header.checksum != Checksum(content)) return std::nullopt;
  if (content.substr(0, key.size()) != key) return std::nullopt;
  std::error_code failed;  // ignored: the entry then counts as used less recently
  fs::last_write_time(PathOf(key), fs::file_time_type::clock::now(), failed);
  return std::string(content.substr(key.size()));
}

void BinaryCache::Store(std::string_view key, std::string_view binary) const {
  if (folder_.empty()) return;
  const std::string content = std::string(key) + std::string(binary);
  Header header;
  const uint64_t bytes = sizeof header + content.size();
  if (bytes > FileBytesMax() || bytes > bytes_max_) return;  // writing beyond FileBytesMax raises SIGXFSZ
  header.key_bytes = key.size();
  header.binary_bytes = binary.size();
  header.checksum = Checksum(content);
  std::error_code failed;
  fs::create_directories(folder_, failed);
  const fs::path path = PathOf(key);
  // mkstemps: the name must be unique among all threads, processes and containers that share the folder.
  std::string part = path.string() + ".XXXXXX.part";
  const int created = mkstemps(part.data(), 5);
  if (created < 0) return;
  close(created);
  {
    std::ofstream file(part, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.close();
    if (!file) {
      fs::remove(part, failed);
      return;
    }
  }
  fs::rename(part, path, failed);
  if (failed) {
    fs::remove(part, failed);
    return;
  }
  EvictOldest(path);
}

// Removes entries and unfinished temporary files, the least recently used first, until the rest fits into bytes_max_.
// `latest` stays. Another process may remove files at the same time: a missing file is no error.
void BinaryCache::EvictOldest(const fs::path& latest) const {
  std::vector<std::pair<fs::file_time_type, fs::path>> others;  // all but `latest`, with the time of their last use
  uint64_t all = 0;
  std::error_code failed;
  for (fs::directory_iterator file(folder_, failed), end; !failed && file != end; file.increment(failed)) {
    const fs::path kind = file->path().extension();
    if (kind != ".bin" && kind != ".part") continue;
    std::error_code gone;
    const uint64_t bytes = file->file_size(gone);
    if (!gone) all += bytes;
    const fs::file_time_type used = file->last_write_time(gone);
    if (!gone && file->path() != latest) others.emplace_back(used, file->path());
  }
  std::sort(others.begin(), others.end());
  for (const auto& [used, path] : others) {
    if (all <= bytes_max_) return;
    const uint64_t bytes = fs::file_size(path, failed);
    if (!failed && fs::remove(path, failed)) all -= std::min(all, bytes);
  }
}

}  // namespace hone::drivers
