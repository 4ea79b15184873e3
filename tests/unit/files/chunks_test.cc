// SPDX-License-Identifier: Apache-2.0
// Borders of chunks depend on the contents around them alone.
#include "files/chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/digest.h"
#include "files/chunk_list.h"
#include "tests/unit/files/made_up_files.h"

namespace hone::files {
namespace {

using ::testing::HasSubstr;

// The bytes of `file` in chunks that `other` does not have.
int64_t BytesNotIn(const FileDescription& other, const FileDescription& file) {
  std::set<Sha256Digest> known;
  for (const ChunkName& chunk : other.chunks) known.insert(chunk.digest);
  int64_t bytes = 0;
  for (const ChunkName& chunk : file.chunks) bytes += known.contains(chunk.digest) ? 0 : chunk.bytes;
  return bytes;
}

TEST(Chunks, ListTheWholeFileWithinTheLimits) {
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, kChunkBytesMin - 1, kChunkBytesMin, kChunkBytesMin + 1,
                              kChunkBytesMax, kChunkBytesMax + 1, 2 * kChunkBytesMax, 40 * kMiB + 7}) {
    const std::string contents = RandomBytes(static_cast<uint64_t>(bytes), bytes);
    const FileDescription file = DescribeBytes(contents);
    EXPECT_TRUE(CheckDescription(file).ok()) << CheckDescription(file);
    EXPECT_EQ(file.bytes(), bytes);
    EXPECT_EQ(file.digest, Sha256Hex(contents));
    for (size_t i = 0; i < file.chunks.size(); ++i) {
      EXPECT_EQ(file.chunks[i].digest, Sha256Of(ChunkOf(file, contents, static_cast<int64_t>(i))));
    }
  }
}

// The borders of a file are part of what two versions of Hone share, so they are stated here.
TEST(Chunks, HaveTheSameBordersEverywhere) {
  std::vector<int64_t> bytes;
  for (const ChunkName& chunk : DescribeBytes(RandomBytes(7, 8 * kMiB)).chunks) bytes.push_back(chunk.bytes);
  EXPECT_THAT(bytes, ::testing::ElementsAre(1155793, 1052401, 1240655, 1444328, 1268712, 1199691, 425108, 601920));
}

TEST(Chunks, HaveAboutTheMeanSize) {
  const FileDescription file = DescribeBytes(RandomBytes(3, 128 * kMiB));
  const double mean = static_cast<double>(file.bytes()) / static_cast<double>(file.chunks.size());
  EXPECT_GT(mean, 0.8 * kChunkBytesMean);
  EXPECT_LT(mean, 1.4 * kChunkBytesMean);
}

TEST(Chunks, OfEqualBytesAreCutToo) {
  const FileDescription zeros = DescribeBytes(std::string(static_cast<size_t>(33 * kMiB), '\0'));
  EXPECT_TRUE(CheckDescription(zeros).ok());
  EXPECT_EQ(zeros.bytes(), 33 * kMiB);
}

// An edit of a few bytes, an insertion or a deletion anywhere changes the chunk around it and few after it.
TEST(Chunks, FewChangeAfterALocalEdit) {
  const std::string original = RandomBytes(1, 64 * kMiB);
  const FileDescription before = DescribeBytes(original);
  Random random(11);
  int64_t changed = 0;
  constexpr int kEdits = 24;
  for (int i = 0; i < kEdits; ++i) {
    std::string edited = original;
    const auto at = static_cast<size_t>(random.Below(static_cast<int64_t>(edited.size())));
    const std::string insertion = RandomBytes(random.Next(), 1 + random.Below(10'000));
    const auto length = static_cast<size_t>(random.Below(10'000));
    if (i % 3 == 0) edited.insert(at, insertion);
    if (i % 3 == 1) edited.erase(at, length);
    if (i % 3 == 2) edited.replace(at, insertion.size(), insertion);
    const int64_t bytes = BytesNotIn(before, DescribeBytes(edited));
    EXPECT_LT(bytes, 5 * kChunkBytesMax) << i;
    changed += bytes;
  }
  EXPECT_LT(changed / kEdits, 3 * kChunkBytesMean);
}

TEST(Chunks, AWrongDescriptionIsRefused) {
  const FileDescription good = DescribeBytes(RandomBytes(1, 8 * kMiB));
  ASSERT_TRUE(CheckDescription(good).ok());
  FileDescription file = good;
  file.digest[0] = 'X';
  EXPECT_THAT(CheckDescription(file).message(), HasSubstr("digest"));
  file = good;
  file.digest = "../../../etc/passwd";
  EXPECT_FALSE(CheckDescription(file).ok());
  file = good;
  file.chunks[0].bytes = kChunkBytesMin - 1;
  EXPECT_THAT(CheckDescription(file).message(), HasSubstr("chunk 0"));
  file = good;
  file.chunks.back().bytes = 0;
  EXPECT_FALSE(CheckDescription(file).ok());
  file = good;
  file.chunks.back().bytes = kChunkBytesMax + 1;
  EXPECT_FALSE(CheckDescription(file).ok());
  file = good;
  file.chunks[1].digest = file.chunks[0].digest;
  file.chunks[1].bytes = file.chunks[0].bytes + 1;
  EXPECT_THAT(CheckDescription(file).message(), HasSubstr("another size"));
}

TEST(Chunks, ADescriptionEndsAtAStop) {
  const MemoryFile file = MemoryFile::Create("contents", kMiB).value();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(DescribeFile(file.descriptor(), "contents", stop.get_token()).status()));
}

TEST(ChunkList, AnyChangeIsFoundOut) {
  const ChunkList list{DescribeBytes(RandomBytes(5, 9 * kMiB)).chunks,
                       {"spiffe://farm/client/ann", {"spiffe://farm/client/ann", "spiffe://farm/client/bob"}}};
  const std::string text = ToText(list);
  const auto parsed = ParseChunkList(text);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->chunks, list.chunks);
  EXPECT_EQ(parsed->of.owner, list.of.owner);
  EXPECT_EQ(parsed->of.holders, list.of.holders);
  for (size_t at = 0; at < text.size(); at += 7) {
    std::string changed = text;
    changed[at] = changed[at] == '0' ? '1' : '0';
    EXPECT_FALSE(ParseChunkList(changed).has_value()) << at;
    EXPECT_FALSE(ParseChunkList(text.substr(0, at)).has_value()) << at;
  }
  const auto lines = ParseChunkList(ToText({{}, {"a\nb\n", {}}}));
  ASSERT_TRUE(lines.has_value());
  EXPECT_EQ(lines->of.owner, "a?b?");
}

}  // namespace
}  // namespace hone::files
