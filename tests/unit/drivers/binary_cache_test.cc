// SPDX-License-Identifier: Apache-2.0
#include "drivers/binary_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_folder.h"

namespace hone::drivers {
namespace {

namespace fs = std::filesystem;

class BinaryCacheTest : public ::testing::Test {
 protected:
  // The path of the only entry.
  fs::path Entry() const { return fs::directory_iterator(folder_.path())->path(); }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  BinaryCache cache_{folder_.path()};
};

TEST_F(BinaryCacheTest, KeepsOneBinaryPerKey) {
  const std::string binary("a\0b", 3);
  EXPECT_EQ(cache_.Find("key"), std::nullopt);
  cache_.Store("key", binary);
  EXPECT_EQ(cache_.Find("key"), binary);
  EXPECT_EQ(cache_.Find("another"), std::nullopt);
  cache_.Store("key", "newer");
  EXPECT_EQ(cache_.Find("key"), "newer");
}

TEST_F(BinaryCacheTest, EntryBeyondFileSizeLimitIsAMiss) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  cache_.Store("large", std::string(1000, 'b'));
  cache_.Store("small", "binary");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(cache_.Find("large"), std::nullopt);
  EXPECT_EQ(cache_.Find("small"), "binary");
}

TEST_F(BinaryCacheTest, DamageAnywhereIsAMiss) {
  cache_.Store("key", "binary");
  const auto size = fs::file_size(Entry());
  for (uintmax_t i = 0; i < size; ++i) {
    cache_.Store("key", "binary");
    std::fstream file(Entry(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(i));
    const char c = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(i));
    file.put(c);
    file.close();
    EXPECT_EQ(cache_.Find("key"), std::nullopt) << "byte " << i;
  }
  for (uintmax_t i = 0; i < size; ++i) {
    cache_.Store("key", "binary");
    fs::resize_file(Entry(), i);
    EXPECT_EQ(cache_.Find("key"), std::nullopt) << "cut to " << i;
  }
}

TEST_F(BinaryCacheTest, AnEntryOfAnotherKeyIsAMiss) {
  cache_.Store("one", "binary");
  const fs::path one = Entry();
  fs::path two;
  cache_.Store("two", "other");
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    if (entry.path() != one) two = entry.path();
  }
  fs::rename(one, two);
  EXPECT_EQ(cache_.Find("two"), std::nullopt);
}

TEST_F(BinaryCacheTest, EvictsBeyondSizeLimit) {
  const BinaryCache cache(folder_.path(), 4000);
  const std::string binary(900, 'b');
  const auto bytes = [&] {
    uintmax_t all = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path())) all += entry.file_size();
    return all;
  };
  const auto set_used = [&](std::chrono::hours ago) {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - ago);
    }
  };
  for (int i = 0; i < 3; ++i) cache.Store("early " + std::to_string(i), binary);
  set_used(std::chrono::hours(2));
  EXPECT_EQ(cache.Find("early 1"), binary);  // makes it the most recently used entry
  for (int i = 0; i < 10; ++i) {
    cache.Store("late " + std::to_string(i), binary);
    EXPECT_LE(bytes(), 4000U);
    EXPECT_EQ(cache.Find("late " + std::to_string(i)), binary);
    if (i != 2) continue;
    EXPECT_EQ(cache.Find("early 0"), std::nullopt);
    EXPECT_EQ(cache.Find("early 1"), binary) << "others were not used for longer";
    EXPECT_EQ(cache.Find("early 2"), std::nullopt);
  }
  cache.Store("larger than all", std::string(4000, 'b'));
  EXPECT_EQ(cache.Find("larger than all"), std::nullopt);
  EXPECT_EQ(cache.Find("late 9"), binary);
}

// Threads of a process write at once, and so may processes in several containers that have the same process id.
TEST_F(BinaryCacheTest, ConcurrentStoresLeaveWholeEntries) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([this, binary = std::string(100'000 + 1000 * static_cast<size_t>(thread), 'b')] {
      for (int i = 0; i < 50; ++i) {
        cache_.Store("key", binary);
        EXPECT_TRUE(cache_.Find("key").has_value());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1) << "parts are left";
}

TEST(BinaryCache, UncreatableFolderStoresNothing) {
  const BinaryCache nowhere{fs::path()}, file{fs::path("/dev/null/folder")};
  for (const BinaryCache* cache : {&nowhere, &file}) {
    cache->Store("key", "binary");
    EXPECT_EQ(cache->Find("key"), std::nullopt);
  }
}

}  // namespace
}  // namespace hone::drivers
