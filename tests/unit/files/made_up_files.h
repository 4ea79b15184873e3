// SPDX-License-Identifier: Apache-2.0
// Contents of files for the tests of this folder, and a store that takes them.
#ifndef HONE_TESTS_UNIT_FILES_MADE_UP_FILES_H_
#define HONE_TESTS_UNIT_FILES_MADE_UP_FILES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/memory_file.h"
#include "base/random.h"
#include "files/chunks.h"
#include "files/file_store.h"

namespace hone::files {

inline constexpr int64_t kMiB = int64_t{1} << 20;

inline std::string RandomBytes(uint64_t seed, int64_t bytes) {
  Random random(seed);
  std::string contents(static_cast<size_t>(bytes), '\0');
  for (char& byte : contents) byte = static_cast<char>(random.Next());
  return contents;
}

inline FileDescription DescribeBytes(const std::string& contents) {
  const MemoryFile file = MemoryFile::Create("contents", static_cast<int64_t>(contents.size())).value();
  if (!contents.empty()) {
    const Mapping mapped = file.Map(MemoryFile::Access::kReadAndWrite).value();
    contents.copy(mapped.data(), contents.size());
  }
  return DescribeFile(file.descriptor(), "contents").value();
}

// The contents of the chunk of that index.
inline std::string ChunkOf(const FileDescription& file, const std::string& contents, int64_t index) {
  int64_t offset = 0;
  for (int64_t i = 0; i < index; ++i) offset += file.chunks[static_cast<size_t>(i)].bytes;
  return contents.substr(static_cast<size_t>(offset),
                         static_cast<size_t>(file.chunks[static_cast<size_t>(index)].bytes));
}

// Offers the contents and puts what is missing.
inline absl::StatusOr<FileDescription> Store(FileStore& store, const std::string& contents,
                                             const std::string& owner = "") {
  FileDescription file = DescribeBytes(contents);
  const auto offer = store.Offer(file, owner);
  if (!offer.ok()) return offer.status();
  for (const int32_t index : offer->missing) {
    const auto put = store.Put(file.digest, index, ChunkOf(file, contents, index));
    if (!put.ok()) return put.status();
  }
  return file;
}

inline std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteBytes(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

}  // namespace hone::files

#endif  // HONE_TESTS_UNIT_FILES_MADE_UP_FILES_H_
