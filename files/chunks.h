// SPDX-License-Identifier: Apache-2.0
// Cuts files into chunks where their contents say so, and describes a file by the digests of its chunks.
//
// A border depends on the 64 bytes before it alone, so an edit changes the chunks around it and no others. Two packages
// of one model therefore share the chunks of their constants, although the constants lie at different places. The rule
// is that of FastCDC (Xia et al., "FastCDC: a Fast and Efficient Content-Defined Chunking Approach for Data
// Deduplication", USENIX ATC 2016): a gear hash whose mask is stricter before the mean size than after it. The sender
// of a file cuts it, and the receiver takes any list of chunks, so the rule may change. Not here: storing and sending
// (file_store.h, transfer.h). Start with DescribeFile.
#ifndef HONE_FILES_CHUNKS_H_
#define HONE_FILES_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/digest.h"

namespace hone::files {

inline constexpr int64_t kChunkBytesMin = int64_t{256} << 10;  // of all chunks but the last of a file
inline constexpr int64_t kChunkBytesMean = int64_t{1} << 20;   // about
inline constexpr int64_t kChunkBytesMax = int64_t{4} << 20;

struct ChunkName {
  Sha256Digest digest = {};
  int64_t bytes = 0;
  friend bool operator==(const ChunkName&, const ChunkName&) = default;
};

// What a file consists of. An empty file has no chunks.
struct FileDescription {
  std::string digest;             // SHA-256 of the contents, as Hex gives it
  std::vector<ChunkName> chunks;  // in order; all together are the file
  int64_t bytes() const;
  friend bool operator==(const FileDescription&, const FileDescription&) = default;
};

// kInvalidArgument: the digest is none, a chunk is larger than kChunkBytesMax, or one other than the last is smaller
// than kChunkBytesMin. The limits bound the length of the list by the size of the file.
absl::Status CheckDescription(const FileDescription& file);

// The length of the first chunk of `bytes`: they must be at least kChunkBytesMax, or all that is left of the file. 0
// only if they are empty.
size_t FirstChunkBytes(std::string_view bytes);

// Reads the open file from its beginning to its end, whatever its position is, with 8 MiB of memory. path: for errors.
// kUnavailable: it cannot be read; kCancelled: a stop was requested.
absl::StatusOr<FileDescription> DescribeFile(int descriptor, const std::string& path, const std::stop_token& stop = {});

// kInvalidArgument: the file has no chunk of that index.
absl::Status CheckIndex(const FileDescription& file, int64_t index);

// The contents of a chunk of the open file, at its place there or at another one; nullopt: they differ from the digest.
// path: for the error, kUnavailable.
absl::StatusOr<std::optional<std::string>> ReadChunk(int descriptor, const std::filesystem::path& path,
                                                     const FileDescription& file, size_t index);
absl::StatusOr<std::optional<std::string>> ReadChunkAt(int descriptor, const std::filesystem::path& path,
                                                       const ChunkName& chunk, int64_t offset);

}  // namespace hone::files

#endif  // HONE_FILES_CHUNKS_H_
