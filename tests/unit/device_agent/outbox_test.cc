// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/outbox.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/temporary_folder.h"

namespace hone::agent {
namespace {

v1::LeaseResult ResultOf(const std::string& id, size_t bytes = 10) {
  v1::LeaseResult result;
  result.mutable_lease()->set_lease_id(id);
  result.mutable_batch()->set_workload(std::string(bytes, 'w'));
  return result;
}

class OutboxTest : public testing::Test {
 protected:
  std::set<std::string> Ids(const Outbox& outbox) {
    std::set<std::string> ids;
    for (const auto& [id, result] : outbox.Read()) ids.insert(id);
    return ids;
  }
  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::filesystem::path path_ = folder_ / "a" / "outbox";
};

TEST_F(OutboxTest, StoredResultSurvivesRestartUntilRemoved) {
  {
    Outbox outbox = Outbox::Open(path_).value();
    ASSERT_TRUE(outbox.StoreResult(ResultOf("aa")).ok());
    ASSERT_TRUE(outbox.StoreResult(ResultOf("bb")).ok());
    ASSERT_TRUE(outbox.StoreResult(ResultOf("bb", 20)).ok());
  }
  Outbox outbox = Outbox::Open(path_).value();
  EXPECT_EQ(Ids(outbox), (std::set<std::string>{"aa", "bb"}));
  EXPECT_EQ(outbox.Read().at("bb").batch().workload().size(), 20u);
  outbox.Forget("aa");
  outbox.Forget("never there");
  EXPECT_EQ(Ids(outbox), (std::set<std::string>{"bb"}));
  struct stat about{};
  ASSERT_EQ(stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700u);
}

TEST_F(OutboxTest, PartialFileIsRenamedToBroken) {
  Outbox outbox = Outbox::Open(path_).value();
  ASSERT_TRUE(outbox.StoreResult(ResultOf("aa")).ok());
  std::ofstream(path_ / "bb.result") << "\x0a\xff half";
  std::ofstream(path_ / "cc.result.new") << "killed while it wrote";
  EXPECT_EQ(Ids(outbox), (std::set<std::string>{"aa"}));
  EXPECT_TRUE(std::filesystem::exists(path_ / "bb.result.broken"));
}

TEST_F(OutboxTest, UnfinishedFileOfAKilledAgentIsRemoved) {
  ASSERT_TRUE(Outbox::Open(path_).ok());
  std::ofstream(path_ / "cc.result.new") << "killed while it wrote";
  std::ofstream(path_ / "dd.result.broken") << "for somebody to look at";
  ASSERT_TRUE(Outbox::Open(path_).ok());
  EXPECT_FALSE(std::filesystem::exists(path_ / "cc.result.new"));
  EXPECT_TRUE(std::filesystem::exists(path_ / "dd.result.broken"));
}

TEST_F(OutboxTest, DropsOldestBeyondLimits) {
  Outbox few = Outbox::Open(path_, {.results = 3, .bytes = 1 << 20}).value();
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(few.StoreResult(ResultOf(std::to_string(i))).ok());
    std::filesystem::last_write_time(path_ / (std::to_string(i) + ".result"),
                                     std::filesystem::file_time_type::clock::now() + std::chrono::seconds(i));
  }
  EXPECT_EQ(Ids(few), (std::set<std::string>{"3", "4", "5"}));
  Outbox small = Outbox::Open(path_, {.results = 100, .bytes = 940}).value();
  ASSERT_TRUE(small.StoreResult(ResultOf("large", 900)).ok());
  EXPECT_TRUE(Ids(small).contains("large"));
  EXPECT_LE(Ids(small).size(), 3u);
}

TEST_F(OutboxTest, LeaseIdThatIsNoFileNameIsRefused) {
  Outbox outbox = Outbox::Open(path_).value();
  for (const char* id : {"", "../aa", "a/b", "."}) EXPECT_FALSE(outbox.StoreResult(ResultOf(id)).ok()) << id;
}

TEST_F(OutboxTest, FailingDiskIsReportedAndLeavesNoPartialFile) {
  Outbox outbox = Outbox::Open(path_).value();
  std::filesystem::remove_all(path_);
  std::ofstream(path_) << "a file where the folder was";
  EXPECT_TRUE(absl::IsUnavailable(outbox.StoreResult(ResultOf("aa"))));
}

}  // namespace
}  // namespace hone::agent
