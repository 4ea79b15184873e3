// SPDX-License-Identifier: Apache-2.0
#include "files/chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/random.h"
#include "files/disk.h"

namespace hone::files {
namespace {

constexpr size_t kWindow = 64;  // bytes that the hash depends on: each byte shifts the hash by one of its 64 bits
// A border is where so many upper bits of the hash are 0. They depend on the most bytes.
constexpr int kBitsBeforeMean = 22, kBitsAfterMean = 18;
constexpr uint64_t kGearSeed = 1;
constexpr size_t kReadBytes = 2 * kChunkBytesMax;

using Gear = std::array<uint64_t, 256>;

const Gear& GearTable() {
  static const Gear table = [] {
    Gear gear;
    Random random(kGearSeed);
    for (uint64_t& number : gear) number = random.Next();
    return gear;
  }();
  return table;
}

}  // namespace

int64_t FileDescription::bytes() const {
  int64_t sum = 0;
  for (const ChunkName& chunk : chunks) sum += chunk.bytes;
  return sum;
}

absl::Status CheckDescription(const FileDescription& file) {
  if (!IsSha256Hex(file.digest)) {
    return absl::InvalidArgumentError("the file's digest is not a SHA-256 of 64 lower-case hexadecimal digits");
  }
  std::map<Sha256Digest, int64_t> sizes;
  for (size_t i = 0; i < file.chunks.size(); ++i) {
    const ChunkName& chunk = file.chunks[i];
    const int64_t least = i + 1 == file.chunks.size() ? 1 : kChunkBytesMin;
    if (chunk.bytes < least || chunk.bytes > kChunkBytesMax) {
      return absl::InvalidArgumentError(fmt::format("chunk {} of file {} has {} bytes; a chunk there has {} to {}", i,
                                                    file.digest, chunk.bytes, least, kChunkBytesMax));
    }
    if (sizes.try_emplace(chunk.digest, chunk.bytes).first->second != chunk.bytes) {
      return absl::InvalidArgumentError(
          fmt::format("chunk {} of file {} has the digest of another one, but another size", i, file.digest));
    }
  }
  return absl::OkStatus();
}

size_t FirstChunkBytes(std::string_view bytes) {
  const size_t end = std::min<size_t>(bytes.size(), kChunkBytesMax);
  const size_t mean = std::min<size_t>(end, kChunkBytesMean);
  if (end <= kChunkBytesMin) return end;
  const Gear& gear = GearTable();
  uint64_t hash = 0;
  const auto add = [&](size_t i) { hash = (hash << 1) + gear[static_cast<uint8_t>(bytes[i])]; };
  size_t i = kChunkBytesMin - kWindow;
  while (i < kChunkBytesMin) add(i++);
  for (; i < mean; ++i) {
    if (hash >> (64 - kBitsBeforeMean) == 0) return i;
    add(i);
  }
  for (; i < end; ++i) {
    if (hash >> (64 - kBitsAfterMean) == 0) return i;
    add(i);
  }
  return end;
}

absl::StatusOr<FileDescription> DescribeFile(int descriptor, const std::string& path, const std::stop_token& stop) {
  FileDescription file;
  Sha256 whole;
  std::string buffer(kReadBytes, '\0');
  size_t begin = 0, end = 0;  // of the bytes in the buffer that are in no chunk yet
  int64_t offset = 0;         // in the file, of `end`
  bool ended = false;
  while (true) {
    if (stop.stop_requested()) return absl::CancelledError(fmt::format("stopped while '{}' was read", path));
    if (!ended && end - begin < static_cast<size_t>(kChunkBytesMax)) {
      std::memmove(buffer.data(), buffer.data() + begin, end - begin);
      end -= begin;
      begin = 0;
      const ptrdiff_t read = ReadAt(descriptor, buffer.data() + end, buffer.size() - end, offset);
      if (read < 0) return DiskError("read", path);
      ended = static_cast<size_t>(read) < buffer.size() - end;
      end += static_cast<size_t>(read);
      offset += read;
    }
    if (begin == end) break;
    std::string_view chunk(buffer.data() + begin, end - begin);
    chunk = chunk.substr(0, FirstChunkBytes(chunk));
    file.chunks.push_back({Sha256Of(chunk), static_cast<int64_t>(chunk.size())});
    whole.Add(chunk);
    begin += chunk.size();
  }
  file.digest = Hex(whole.Finish());
  return file;
}

absl::Status CheckIndex(const FileDescription& file, int64_t index) {
  if (index >= 0 && static_cast<size_t>(index) < file.chunks.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("file {} has no chunk {}; it has {} chunks", file.digest, index, file.chunks.size()));
}

absl::StatusOr<std::optional<std::string>> ReadChunkAt(int descriptor, const std::filesystem::path& path,
                                                       const ChunkName& chunk, int64_t offset) {
  std::string contents(static_cast<size_t>(chunk.bytes), '\0');
  const ptrdiff_t read = ReadAt(descriptor, contents.data(), contents.size(), offset);
  if (read < 0) return DiskError("read", path);
  if (static_cast<size_t>(read) < contents.size() || Sha256Of(contents) != chunk.digest) return std::nullopt;
  return contents;
}

absl::StatusOr<std::optional<std::string>> ReadChunk(int descriptor, const std::filesystem::path& path,
                                                     const FileDescription& file, size_t index) {
  int64_t offset = 0;
  for (size_t i = 0; i < index; ++i) offset += file.chunks[i].bytes;
  return ReadChunkAt(descriptor, path, file.chunks[index], offset);
}

}  // namespace hone::files
