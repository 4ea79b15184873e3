// SPDX-License-Identifier: Apache-2.0
#include "tuner/build_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using Kind = BuildRequest::Kind;

class BuildQueueTest : public ::testing::Test {
 protected:
  void Push(const std::string& name, const BuildOwner& owner, Kind kind = Kind::kCompile) {
    BuildTask task;
    task.request.kind = kind;
    task.request.name = name;
    task.owner = owner;
    queue_.Push(std::move(task));
  }
  std::vector<std::string> PopAll() {
    std::vector<std::string> names;
    while (!queue_.empty()) names.push_back(queue_.Pop().request.name);
    return names;
  }

  BuildQueue queue_;
  const int jobs_[3] = {};  // only their addresses matter
  const BuildOwner ann_{&jobs_[0]}, bob_{&jobs_[1]}, admin_{&jobs_[2], 3};
};

TEST_F(BuildQueueTest, OneJobIsServedInItsOrderAndLinksFirst) {
  Push("a", ann_);
  Push("b", ann_);
  Push("c", ann_, Kind::kCompileReference);
  Push("link", ann_, Kind::kLink);
  EXPECT_THAT(PopAll(), ElementsAre("link", "a", "b", "c"));
}

TEST_F(BuildQueueTest, JobsTakeTurnsHoweverMuchOneAsksFor) {
  for (const char* name : {"a1", "a2", "a3", "a4"}) Push(name, ann_);
  EXPECT_EQ(queue_.Pop().request.name, "a1");
  for (const char* name : {"b1", "b2"}) Push(name, bob_);
  EXPECT_THAT(PopAll(), ElementsAre("a2", "b1", "a3", "b2", "a4"));
}

TEST_F(BuildQueueTest, AnIdleJobGetsNoExtraTurns) {
  for (int i = 0; i < 100; ++i) Push("a", ann_);
  for (int i = 0; i < 50; ++i) queue_.Pop();
  for (const char* name : {"b1", "b2", "b3"}) Push(name, bob_);
  std::vector<std::string> next;
  for (int i = 0; i < 4; ++i) next.push_back(queue_.Pop().request.name);
  EXPECT_THAT(next, ElementsAre("a", "b1", "a", "b2"));
}

TEST_F(BuildQueueTest, TheHigherPriorityGoesFirst) {
  Push("a", ann_);
  Push("first", admin_);
  Push("b", bob_);
  Push("second", admin_);
  EXPECT_THAT(PopAll(), ElementsAre("first", "second", "a", "b"));
}

}  // namespace
}  // namespace hone::tuner
