// SPDX-License-Identifier: Apache-2.0
// A file of the store is whole and right, or not there: after wrong chunks, damage on the disk, a full disk and kill
// -9.
#include "files/file_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/digest.h"
#include "base/temporary_folder.h"
#include "tests/unit/files/made_up_files.h"

namespace hone::files {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::set<std::string> NamesIn(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

class FileStoreTest : public testing::Test {
 protected:
  void Open(KeepRules rules = {}) {
    store_.reset();
    rules.now = [this] { return now_; };
    auto opened = FileStore::Open(folder_, std::move(rules));
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  std::string Stored(const std::string& digest) {
    const auto file = store_->OpenFile(digest);
    return file.ok() ? ReadBytes(file->path()) : "";
  }
  // A chunk of the file is put that way until `left` are missing.
  void PutUntil(const FileDescription& file, const std::string& contents, size_t left) {
    const auto offer = store_->Offer(file);
    ASSERT_TRUE(offer.ok()) << offer.status();
    for (size_t i = 0; i + left < offer->missing.size(); ++i) {
      ASSERT_TRUE(store_->Put(file.digest, offer->missing[i], ChunkOf(file, contents, offer->missing[i])).ok());
    }
  }
  // Changes one byte of a file in the folder.
  void Damage(const std::string& name, size_t at) {
    std::string bytes = ReadBytes(folder_ / name);
    ASSERT_LT(at, bytes.size());
    bytes[at] = static_cast<char>(~bytes[at]);
    WriteBytes(folder_ / name, bytes);
  }
  std::set<std::string> Names() const { return NamesIn(folder_); }

  const TemporaryFolder parent_ = TemporaryFolder::Create().value();
  const std::filesystem::path folder_ = parent_ / "files";
  absl::Time now_ = absl::Now();
  std::unique_ptr<FileStore> store_;
};

TEST_F(FileStoreTest, AFileIsThereAfterReopening) {
  const std::string contents = RandomBytes(1, 6 * kMiB);
  Open();
  const auto file = Store(*store_, contents);
  ASSERT_TRUE(file.ok()) << file.status();
  for (int round = 0; round < 2; ++round) {
    const auto described = store_->Describe(file->digest);
    ASSERT_TRUE(described.ok());
    EXPECT_EQ(*described, *file);
    EXPECT_EQ(Stored(file->digest), contents);
    EXPECT_EQ(*store_->Get(file->digest, 2), ChunkOf(*file, contents, 2));
    EXPECT_THAT(store_->Offer(*file)->missing, IsEmpty());
    EXPECT_EQ(store_->usage().bytes, 6 * kMiB);
    EXPECT_THAT(Names(), UnorderedElementsAre("lock", file->digest, file->digest + ".chunks"));
    Open();
  }
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Get(file->digest, -1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Get(file->digest, 100).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Get(std::string(64, '0'), 0).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Put(std::string(64, '0'), 0, "x").status()));
}

TEST_F(FileStoreTest, AnEmptyFileIsCompleteAtOnce) {
  Open();
  const auto offer = store_->Offer(DescribeBytes(""));
  ASSERT_TRUE(offer.ok()) << offer.status();
  EXPECT_TRUE(offer->completed);
  FileDescription wrong;
  wrong.digest = std::string(64, 'a');
  EXPECT_TRUE(absl::IsDataLoss(store_->Offer(wrong).status()));
}

TEST_F(FileStoreTest, ChunksOfOtherFilesAreNotMissing) {
  Open();
  std::string contents = RandomBytes(1, 32 * kMiB);
  ASSERT_TRUE(Store(*store_, contents).ok());
  contents.insert(10 * kMiB, "code");
  const FileDescription edited = DescribeBytes(contents);
  const auto offer = store_->Offer(edited);
  ASSERT_TRUE(offer.ok());
  EXPECT_THAT(offer->missing, AllOf(Not(IsEmpty()), SizeIs(::testing::Le(4))));
  ASSERT_TRUE(Store(*store_, contents).ok());
  EXPECT_EQ(Stored(edited.digest), contents);
  // A file all of whose chunks are there is complete when it is offered.
  FileDescription half{"", {edited.chunks.begin(), edited.chunks.begin() + 3}};
  const std::string bytes = contents.substr(0, static_cast<size_t>(half.bytes()));
  half.digest = Sha256Hex(bytes);
  EXPECT_TRUE(store_->Offer(half)->completed);
  EXPECT_EQ(Stored(half.digest), bytes);
}

TEST_F(FileStoreTest, EqualChunksTravelOnce) {
  Open();
  const std::string contents(static_cast<size_t>(21 * kMiB), '\0');
  const FileDescription file = DescribeBytes(contents);
  ASSERT_GT(file.chunks.size(), 4u);
  EXPECT_THAT(store_->Offer(file)->missing, SizeIs(::testing::Le(2)));
  ASSERT_TRUE(Store(*store_, contents).ok());
  EXPECT_EQ(Stored(file.digest), contents);
}

TEST_F(FileStoreTest, AWrongChunkIsRefused) {
  Open();
  const std::string contents = RandomBytes(1, 6 * kMiB);
  const FileDescription file = DescribeBytes(contents);
  ASSERT_TRUE(store_->Offer(file).ok());
  std::string wrong = ChunkOf(file, contents, 1);
  wrong[5] = static_cast<char>(~wrong[5]);
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Put(file.digest, 1, wrong).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Put(file.digest, 0, ChunkOf(file, contents, 1)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Put(file.digest, -1, "").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Put(file.digest, 1000, "").status()));
  EXPECT_THAT(store_->Offer(file)->missing, SizeIs(file.chunks.size()));
  EXPECT_TRUE(absl::IsNotFound(store_->Describe(file.digest).status()));
  ASSERT_TRUE(Store(*store_, contents).ok());
  EXPECT_EQ(Stored(file.digest), contents);
}

TEST_F(FileStoreTest, RightChunksOfAWrongFileLeaveNothing) {
  Open();
  const std::string contents = RandomBytes(1, 6 * kMiB);
  FileDescription file = DescribeBytes(contents);
  file.digest = Sha256Hex("another file");
  absl::Status last;
  const auto offer = store_->Offer(file);
  ASSERT_TRUE(offer.ok());
  for (const int32_t index : offer->missing) {
    last = store_->Put(file.digest, index, ChunkOf(file, contents, index)).status();
  }
  EXPECT_TRUE(absl::IsDataLoss(last)) << last;
  EXPECT_THAT(Names(), ElementsAre("lock"));
  EXPECT_EQ(store_->usage().bytes, 0);
}

TEST_F(FileStoreTest, APartialFileGoesOnAfterReopening) {
  const std::string contents = RandomBytes(1, 9 * kMiB);
  const FileDescription file = DescribeBytes(contents);
  Open();
  PutUntil(file, contents, 3);
  Open();
  EXPECT_EQ(store_->usage().partial, 1);
  EXPECT_THAT(store_->Offer(file)->missing, SizeIs(3));
  Open();
  // A caller that did not notice the restart goes on.
  const auto put = store_->Put(file.digest, static_cast<int64_t>(file.chunks.size()) - 1,
                               ChunkOf(file, contents, static_cast<int64_t>(file.chunks.size()) - 1));
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->missing, 2);
  ASSERT_TRUE(Store(*store_, contents).ok());
  EXPECT_EQ(Stored(file.digest), contents);
}

TEST_F(FileStoreTest, DamagedBytesOfAPartialFileAreMissingAgain) {
  const std::string contents = RandomBytes(1, 9 * kMiB);
  const FileDescription file = DescribeBytes(contents);
  Open();
  PutUntil(file, contents, 1);
  store_.reset();
  Damage(file.digest + ".part", 100);
  Open();
  EXPECT_THAT(store_->Offer(file)->missing, SizeIs(2));
  store_.reset();
  std::filesystem::resize_file(folder_ / (file.digest + ".part"), 10);
  Open();
  EXPECT_THAT(store_->Offer(file)->missing, SizeIs(file.chunks.size()));
  ASSERT_TRUE(Store(*store_, contents).ok());
  EXPECT_EQ(Stored(file.digest), contents);
  // Without its list a partial file is of no use.
  const std::string other = RandomBytes(2, 9 * kMiB);
  PutUntil(DescribeBytes(other), other, 1);
  store_.reset();
  Damage(DescribeBytes(other).digest + ".chunks", 100);
  Open();
  EXPECT_THAT(Names(), UnorderedElementsAre("lock", file.digest, file.digest + ".chunks"));
}

TEST_F(FileStoreTest, DamageOfAPartialFileWhileItIsOpenIsFoundAtTheEnd) {
  const std::string contents = RandomBytes(1, 9 * kMiB);
  const FileDescription file = DescribeBytes(contents);
  Open();
  PutUntil(file, contents, 1);
  Damage(file.digest + ".part", 100);
  const auto last = store_->Offer(file)->missing;
  ASSERT_THAT(last, SizeIs(1));
  EXPECT_TRUE(absl::IsDataLoss(store_->Put(file.digest, last[0], ChunkOf(file, contents, last[0])).status()));
  EXPECT_THAT(Names(), ElementsAre("lock"));
}

TEST_F(FileStoreTest, ADamagedFileIsNotFound) {
  const std::string contents = RandomBytes(1, 6 * kMiB);
  Open();
  const std::string digest = Store(*store_, contents)->digest;
  // The list alone: it is made again.
  Damage(digest + ".chunks", 100);
  Open();
  EXPECT_EQ(store_->Describe(digest)->digest, digest);
  // A chunk, which Get compares, and the whole, which OpenFile compares.
  Damage(digest, 100);
  EXPECT_THAT(std::string(store_->Get(digest, 0).status().message()), HasSubstr("have changed on the disk"));
  EXPECT_THAT(Names(), ElementsAre("lock"));
  ASSERT_TRUE(Store(*store_, contents).ok());
  Damage(digest, 100);
  Open();
  EXPECT_TRUE(absl::IsNotFound(store_->OpenFile(digest).status()));
  EXPECT_THAT(Names(), ElementsAre("lock"));
  // Its size.
  ASSERT_TRUE(Store(*store_, contents).ok());
  std::filesystem::resize_file(folder_ / digest, 10);
  Open();
  EXPECT_TRUE(absl::IsNotFound(store_->Describe(digest).status()));
  EXPECT_THAT(Names(), ElementsAre("lock"));
  // It was deleted by hand.
  ASSERT_TRUE(Store(*store_, contents).ok());
  std::filesystem::remove(folder_ / digest);
  EXPECT_TRUE(absl::IsNotFound(store_->OpenFile(digest).status()));
  EXPECT_TRUE(Store(*store_, contents).ok());
}

TEST_F(FileStoreTest, DamagedChunksOfOtherFilesAreNotCopied) {
  Open();
  std::string contents = RandomBytes(1, 9 * kMiB);
  const std::string digest = Store(*store_, contents)->digest;
  Damage(digest, 100);
  contents += "more";
  ASSERT_TRUE(Store(*store_, contents).ok());
  EXPECT_EQ(Stored(Sha256Hex(contents)), contents);
}

TEST_F(FileStoreTest, FilesThatWereUnusedForLongestMakeRoom) {
  std::set<std::string> in_use;
  const KeepRules rules{.quota = 10 * kMiB, .in_use = [&in_use](const auto&) { return in_use; }};
  Open(rules);
  std::vector<std::string> digests;
  for (uint64_t i = 0; i < 3; ++i) {
    digests.push_back(Store(*store_, RandomBytes(i, 3 * kMiB))->digest);
    now_ += absl::Hours(1);
  }
  const std::string next = RandomBytes(3, 3 * kMiB);
  const absl::Status full = Store(*store_, next).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()), AllOf(HasSubstr("no room"), HasSubstr("quota")));
  EXPECT_EQ(store_->usage().files, 3) << "a file that does not come in deletes none";
  now_ += absl::Hours(25);
  in_use = {digests[1]};
  ASSERT_TRUE(store_->Describe(digests[0]).ok());  // a use
  Open(rules);                                     // the times of use are on the disk
  ASSERT_TRUE(Store(*store_, next).ok());
  EXPECT_TRUE(store_->Describe(digests[0]).ok());
  EXPECT_TRUE(store_->Describe(digests[1]).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Describe(digests[2]).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(Store(*store_, RandomBytes(4, 11 * kMiB)).status()));
}

// The tracker looks for each of these files in its queue, under the lock of the farm.
TEST_F(FileStoreTest, OnlyFilesThatCouldBeDeletedAreAskedFor) {
  std::vector<std::vector<std::string>> asked;
  Open({.quota = 100 * kMiB, .in_use = [&](const std::vector<std::string>& digests) {
          asked.push_back(digests);
          return std::set<std::string>();
        }});
  const std::string first = RandomBytes(1, kMiB);
  ASSERT_TRUE(Store(*store_, first).ok());
  ASSERT_TRUE(Store(*store_, RandomBytes(2, kMiB)).ok());
  EXPECT_TRUE(asked.empty()) << "all were used lately";
  now_ += absl::Hours(25);
  ASSERT_TRUE(store_->Describe(DescribeBytes(RandomBytes(2, kMiB)).digest).ok());  // a use
  ASSERT_TRUE(Store(*store_, RandomBytes(3, kMiB)).ok());
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_THAT(asked[0], ElementsAre(Sha256Hex(first)));
}

TEST_F(FileStoreTest, AFileIsDeletedAtOnceIfOnlyIgnoredHoldersHaveIt) {
  std::set<std::string> in_use;
  Open({.quota = 100 * kMiB, .in_use = [&in_use](const auto&) { return in_use; }});
  std::vector<std::string> digests;
  for (uint64_t i = 0; i < 5; ++i) digests.push_back(Store(*store_, RandomBytes(i, kMiB))->digest);
  store_->AddHolder(digests[0], "tuner");
  store_->AddHolder(digests[1], "tuner");
  store_->AddHolder(digests[1], "client");
  in_use = {digests[2]};
  const FileStore::Hold hold(*store_, {digests[3]});
  store_->DeleteUnlessHeld({digests[0], digests[1], digests[2], digests[3], Sha256Hex("never stored")},
                           [](const std::string& holder) { return holder == "tuner"; });
  EXPECT_EQ(store_->usage().files, 4);
  EXPECT_TRUE(absl::IsNotFound(store_->Describe(digests[0]).status()));
}

TEST_F(FileStoreTest, FilesAreDeletedInTheOrderOfTheirLastUse) {
  Open({.quota = 8 * kMiB});
  std::vector<std::string> digests;
  for (uint64_t i = 0; i < 8; ++i) digests.push_back(Store(*store_, RandomBytes(i, kMiB))->digest);
  std::ranges::sort(digests);
  const std::vector<size_t> order = {5, 2, 7, 0, 3, 6, 1, 4};
  for (const size_t next : order) {
    now_ += absl::Hours(1);
    ASSERT_TRUE(store_->Describe(digests[next]).ok());
  }
  now_ += absl::Hours(30);
  for (size_t i = 0; i < order.size(); ++i) {
    ASSERT_TRUE(Store(*store_, RandomBytes(100 + i, kMiB)).ok());
    EXPECT_FALSE(Names().contains(digests[order[i]]));
    for (size_t later = i + 1; later < order.size(); ++later) EXPECT_TRUE(Names().contains(digests[order[later]]));
  }
}

TEST_F(FileStoreTest, APartialFileThatNobodySendsMakesRoom) {
  Open({.quota = 10 * kMiB});
  const std::string contents = RandomBytes(1, 9 * kMiB), other = RandomBytes(2, 9 * kMiB);
  PutUntil(DescribeBytes(contents), contents, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(Store(*store_, other).status()));
  now_ += absl::Hours(2);
  ASSERT_TRUE(Store(*store_, other).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Put(Sha256Hex(contents), 0, "").status()));
  EXPECT_THAT(Names(), UnorderedElementsAre("lock", Sha256Hex(other), Sha256Hex(other) + ".chunks"));
}

TEST_F(FileStoreTest, ManySmallFilesCountToo) {
  Open({.quota = 2 * kMiB});
  int stored = 0;
  while (stored < 100 && Store(*store_, "file " + std::to_string(stored)).ok()) ++stored;
  EXPECT_EQ(stored, 8);
}

TEST_F(FileStoreTest, OneOwnerCannotFillTheStore) {
  const KeepRules rules{.quota = 20 * kMiB, .quota_of_owner = 10 * kMiB};
  Open(rules);
  const std::string first = RandomBytes(1, 4 * kMiB), second = RandomBytes(2, 4 * kMiB);
  ASSERT_TRUE(Store(*store_, first, "ann").ok());
  ASSERT_TRUE(Store(*store_, second, "ann").ok());
  const absl::Status full = Store(*store_, RandomBytes(3, 4 * kMiB), "ann").status();
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()), HasSubstr("'ann' has"));
  Open(rules);  // owners are on the disk
  EXPECT_TRUE(absl::IsResourceExhausted(Store(*store_, RandomBytes(3, 4 * kMiB), "ann").status()));
  ASSERT_TRUE(Store(*store_, RandomBytes(3, 4 * kMiB), "bob").ok());
  // A file counts against the owner of the last offer, so that bob's interest in it costs ann nothing.
  ASSERT_TRUE(Store(*store_, first, "bob").ok());
  ASSERT_TRUE(Store(*store_, RandomBytes(4, 4 * kMiB), "ann").ok());
  // Files that may be deleted count for no owner.
  now_ += absl::Hours(25);
  ASSERT_TRUE(Store(*store_, RandomBytes(5, 9 * kMiB), "ann").ok());
}

TEST_F(FileStoreTest, WhoOnlyKnowsTheDigestOfAFileDoesNotHoldIt) {
  Open();
  const std::string small = RandomBytes(1, 300 << 10), large = RandomBytes(2, 9 * kMiB);
  const FileDescription one = DescribeBytes(small), several = DescribeBytes(large);
  ASSERT_EQ(one.chunks.size(), 1u);
  ASSERT_TRUE(Store(*store_, small).ok());
  ASSERT_TRUE(Store(*store_, large).ok());
  // Its digest is that of its only chunk.
  EXPECT_THAT(store_->Offer(one, "eve", "eve")->missing, ElementsAre(0));
  EXPECT_FALSE(store_->Put(one.digest, 0, RandomBytes(3, 300 << 10), "eve")->completed);
  EXPECT_FALSE(store_->Holds(one.digest, "eve"));
  // A file that begins with it, for which the store would have to reveal the chunk.
  FileDescription longer{std::string(64, 'a'), {one.chunks[0], {Sha256Of("end"), 3}}};
  EXPECT_THAT(store_->Offer(longer, "eve", "eve")->missing, ElementsAre(0, 1));
  // Somebody who has it shows the chunk once.
  EXPECT_THAT(store_->Offer(one, "ann", "ann")->missing, ElementsAre(0));
  ASSERT_TRUE(store_->Put(one.digest, 0, small, "ann").ok());
  EXPECT_TRUE(store_->Holds(one.digest, "ann"));
  EXPECT_THAT(store_->Offer(one, "ann", "ann")->missing, IsEmpty());
  // The digests of several chunks are known only to those who have the file, however it was cut.
  FileDescription wrong{several.digest, {{Sha256Of("a"), kMiB}, {Sha256Of("b"), several.bytes() - kMiB}}};
  EXPECT_FALSE(store_->Offer(wrong, "eve", "eve").ok());
  EXPECT_FALSE(store_->Holds(several.digest, "eve"));
  FileDescription recut{several.digest, {}};
  for (size_t at = 0; at < large.size(); at += kMiB) recut.chunks.push_back({Sha256Of(large.substr(at, kMiB)), kMiB});
  EXPECT_THAT(store_->Offer(recut, "bob", "bob")->missing, IsEmpty());
  EXPECT_THAT(store_->Offer(several, "ann", "ann")->missing, IsEmpty());
  Open();  // holders are on the disk
  for (const char* holder : {"ann", "bob"}) EXPECT_TRUE(store_->Holds(several.digest, holder)) << holder;
  EXPECT_TRUE(store_->Holds(one.digest, "ann"));
  EXPECT_FALSE(store_->Holds(several.digest, "eve"));
}

TEST_F(FileStoreTest, AHoldKeepsFilesThatDoNotFit) {
  Open({.quota = 0, .refuse_beyond_quota = false, .keep = absl::ZeroDuration()});
  const std::string first = RandomBytes(1, 3 * kMiB), second = RandomBytes(2, 3 * kMiB);
  {
    const FileStore::Hold hold(*store_, {Sha256Hex(first)}), again(*store_, {Sha256Hex(first)});
    ASSERT_TRUE(Store(*store_, first).ok());
    ASSERT_TRUE(Store(*store_, second).ok());
    store_->DeleteBeyondQuota();
    EXPECT_EQ(Stored(Sha256Hex(first)), first) << "another device is about to open it";
    EXPECT_EQ(Stored(Sha256Hex(second)), "");
  }
  store_->DeleteBeyondQuota();
  EXPECT_THAT(Names(), ElementsAre("lock"));
}

TEST_F(FileStoreTest, ACacheTakesWhatIsNeededAndKeepsItsQuota) {
  std::set<std::string> in_use;
  Open({.quota = 0, .refuse_beyond_quota = false, .keep = absl::ZeroDuration(), .in_use = [&in_use](const auto&) {
          return in_use;
        }});
  const std::string first = RandomBytes(1, 3 * kMiB), second = RandomBytes(2, 3 * kMiB);
  in_use = {Sha256Hex(first), Sha256Hex(second)};
  ASSERT_TRUE(Store(*store_, first).ok());
  ASSERT_TRUE(Store(*store_, second).ok());
  const OpenedFile opened = store_->OpenFile(Sha256Hex(first)).value();
  in_use = {Sha256Hex(second)};
  store_->DeleteBeyondQuota();
  EXPECT_EQ(Stored(Sha256Hex(first)), "");
  EXPECT_EQ(ReadBytes(opened.path()), first) << "an open file can be read after it was deleted";
  EXPECT_EQ(Stored(Sha256Hex(second)), second);
  in_use.clear();
  store_->DeleteBeyondQuota();
  EXPECT_THAT(Names(), ElementsAre("lock"));
}

TEST_F(FileStoreTest, AnOfferWithOtherChunksStartsAnew) {
  Open();
  const std::string contents = RandomBytes(1, 3 * kMiB);
  const FileDescription file = DescribeBytes(contents);
  FileDescription other{file.digest, {}};
  for (size_t at = 0; at < contents.size(); at += kMiB) {
    other.chunks.push_back({Sha256Of(contents.substr(at, kMiB)), kMiB});
  }
  PutUntil(other, contents, 1);
  EXPECT_THAT(store_->Offer(file)->missing, SizeIs(file.chunks.size()));
  PutUntil(other, contents, 0);
  EXPECT_EQ(Stored(file.digest), contents);
  EXPECT_EQ(*store_->Describe(file.digest), other);
  EXPECT_THAT(store_->Offer(file)->missing, IsEmpty());
}

TEST_F(FileStoreTest, AFolderHasOneUser) {
  Open();
  const auto second = FileStore::Open(folder_, {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another program uses"));
}

TEST_F(FileStoreTest, ALocalFileIsCopied) {
  Open();
  const std::string contents = RandomBytes(1, 6 * kMiB), path = parent_ / "local";
  WriteBytes(path, contents);
  const auto file = store_->AddLocal(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Stored(file->digest), contents);
  EXPECT_EQ(*store_->AddLocal(path), *file);
  EXPECT_TRUE(absl::IsNotFound(store_->AddLocal(path + "x").status()));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(store_->AddLocal(path, "", stop.get_token()).status()));
}

// The same file from many callers at a time, and others that share chunks with it. Exactly one call completes each.
TEST_F(FileStoreTest, ManyCallersStoreTheSameFiles) {
  Open();
  std::vector<std::string> contents = {RandomBytes(1, 9 * kMiB)};
  for (const size_t at : {3 * kMiB, 6 * kMiB}) contents.push_back(std::string(contents[0]).insert(at, "edit"));
  std::vector<FileDescription> files;
  for (const std::string& bytes : contents) files.push_back(DescribeBytes(bytes));
  std::atomic<int> completed = 0, failed = 0;
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      for (size_t i = 0; i < files.size(); ++i) {
        const size_t which = (i + caller) % files.size();
        const auto offer = store_->Offer(files[which]);
        failed += !offer.ok();
        if (!offer.ok()) continue;
        completed += offer->completed;
        for (const int32_t index : offer->missing) {
          const auto put = store_->Put(files[which].digest, index, ChunkOf(files[which], contents[which], index));
          failed += !put.ok();
          completed += put.ok() && put->completed;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(completed, 3);
  for (size_t i = 0; i < files.size(); ++i) EXPECT_EQ(Stored(files[i].digest), contents[i]);
}

// Runs `body` in a child, and returns whether it ended well. After `kill_after` the child is killed.
template <typename Body>
bool InChild(const Body& body, std::chrono::microseconds kill_after = std::chrono::hours(1)) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      _exit(body() ? 0 : 1);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
      _exit(1);
    }
  }
  const auto end = std::chrono::steady_clock::now() + kill_after;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(FileStoreTest, AFullDiskIsSaidAndLeavesNothing) {
  Open();
  const std::string small = RandomBytes(1, kMiB), large = RandomBytes(2, 9 * kMiB);
  ASSERT_TRUE(Store(*store_, small).ok());
  store_.reset();
  const FileDescription file = DescribeBytes(large);
  EXPECT_TRUE(InChild([&] {
    // No file may grow beyond 4 MiB.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4 << 20, 4 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    Open();
    const absl::Status full = store_->Offer(file).status();
    EXPECT_TRUE(absl::IsUnavailable(full)) << full;
    EXPECT_THAT(std::string(full.message()), AllOf(HasSubstr(folder_), HasSubstr("File too large; raise")));
    EXPECT_EQ(Stored(Sha256Hex(small)), small);
    EXPECT_EQ(store_->usage().partial, 0);
    return !HasFailure();
  }));
  EXPECT_THAT(Names(), UnorderedElementsAre("lock", Sha256Hex(small), Sha256Hex(small) + ".chunks"));
}

// A disk of its own for the folder, which the child fills.
TEST_F(FileStoreTest, ADiskThatFillsUpLeavesNothing) {
  std::filesystem::create_directory(folder_);
  EXPECT_TRUE(InChild([&] {
    const uid_t user = getuid();
    if (unshare(CLONE_NEWNS) != 0) {
      if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return true;
      WriteBytes("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
    }
    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=8m") != 0) return true;  // this system lets no test mount
    Open();
    const std::string small = RandomBytes(1, kMiB), large = RandomBytes(2, 9 * kMiB), fits = RandomBytes(3, 6 * kMiB);
    EXPECT_TRUE(Store(*store_, small).ok());
    const absl::Status full = Store(*store_, large).status();
    EXPECT_TRUE(absl::IsUnavailable(full)) << full;
    EXPECT_THAT(std::string(full.message()), HasSubstr("No space left on device; free some space"));
    EXPECT_THAT(Names(), UnorderedElementsAre("lock", Sha256Hex(small), Sha256Hex(small) + ".chunks"));
    EXPECT_TRUE(Store(*store_, fits).ok());
    EXPECT_EQ(Stored(Sha256Hex(fits)), fits);
    return !HasFailure();
  }));
}

// Kills a process that stores files that share chunks, and that deletes others for them, at random moments. Whatever is
// complete then is right, and nothing is there that no later call would use or delete.
TEST_F(FileStoreTest, KillingAtAnyMomentLeavesNoWrongFile) {
  std::vector<std::string> contents = {RandomBytes(1, 3 * kMiB)};
  for (const size_t at : {kMiB, 2 * kMiB}) contents.push_back(std::string(contents[0]).insert(at, "edit"));
  std::map<std::string, std::string> by_digest;
  for (const std::string& bytes : contents) by_digest[Sha256Hex(bytes)] = bytes;
  const KeepRules rules{.quota = 7 * kMiB, .refuse_beyond_quota = false, .keep = absl::ZeroDuration()};
  Random random(5);
  int complete = 0, partial = 0;
  for (int round = 0; round < 150; ++round) {
    const size_t first = static_cast<size_t>(random.Below(3));
    ASSERT_TRUE(InChild(
        [&] {
          Open(rules);
          for (size_t i = first;; ++i) {
            if (!Store(*store_, contents[i % contents.size()]).ok()) return false;
          }
        },
        std::chrono::microseconds(random.Below(40'000))));
    Open(rules);
    complete += static_cast<int>(store_->usage().files);
    partial += static_cast<int>(store_->usage().partial);
    for (const auto& [digest, bytes] : by_digest) {
      if (!store_->Describe(digest).ok()) continue;
      ASSERT_EQ(Stored(digest), bytes) << "round " << round;
    }
    for (const std::string& name : Names()) {
      const std::string digest = name.substr(0, name.find('.'));
      EXPECT_TRUE(name == "lock" || by_digest.contains(digest)) << name;
      EXPECT_TRUE(name == "lock" || name == digest || name == digest + ".part" || name == digest + ".chunks") << name;
    }
    store_.reset();
  }
  EXPECT_GT(complete, 0);
  EXPECT_GT(partial, 0);
  Open(rules);
  for (const std::string& bytes : contents) {
    ASSERT_TRUE(Store(*store_, bytes).ok());
    EXPECT_EQ(Stored(Sha256Hex(bytes)), bytes);
  }
}

}  // namespace
}  // namespace hone::files
