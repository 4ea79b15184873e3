// SPDX-License-Identifier: Apache-2.0
#include "compiler/pass_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/temporary_folder.h"

namespace hone::countdown {

// The smallest possible program: a number, which is legal unless it is negative.
struct Number {
  int value;
};
std::string Print(const Number& n) { return std::to_string(n.value) + "\n"; }
bool Equal(const Number& a, const Number& b) { return a.value == b.value; }
absl::Status Verify(const Number& n) {
  return n.value >= 0 ? absl::OkStatus() : absl::InvalidArgumentError("it is negative");
}

absl::Status Decrease(Number& n) { return --n.value, absl::OkStatus(); }
absl::Status Clamp(Number& n) { return n.value = std::max(n.value, 0), absl::OkStatus(); }
absl::Status Refuse(Number&) { return absl::FailedPreconditionError("not today"); }

constexpr Pass<Number> kPasses[] = {
    {"decrease", Decrease}, {"clamp", Clamp}, {"decrease", Decrease}, {"refuse", Refuse}};

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(PassRunner, RunsInOrderAndSaysWhatChanged) {
  Number n{1};
  std::vector<std::string> runs;
  const auto after = [&](const PassRun& run, const Number& now) {
    runs.push_back(std::string(run.pass) + (*run.changed ? " changed to " : " left ") + std::to_string(now.value));
    return absl::OkStatus();
  };
  const auto passes = std::span(kPasses).first(2);
  EXPECT_EQ(RunPasses<Number>(passes, n, {.compare = true, .after = after}), absl::OkStatus());
  EXPECT_THAT(runs, ElementsAre("decrease changed to 0", "clamp left 0"));
}

TEST(PassRunner, TheErrorOfAPassNamesIt) {
  Number n{5};
  const absl::Status status = RunPasses<Number>(kPasses, n);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "pass refuse: not today");
  EXPECT_EQ(n.value, 3);
}

TEST(PassRunner, AnIllegalProgramIsBlamedOnThePassThatLeftIt) {
  Number n{0};
  const absl::Status status = RunPasses<Number>(kPasses, n, {.verify = true});
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "the program is illegal after decrease: it is negative");
}

TEST(PassRunner, AnIllegalInputIsBlamedOnItsProducer) {
  Number n{-1};
  const absl::Status status = RunPasses<Number>(kPasses, n, {.verify = true, .producer = "import"});
  EXPECT_EQ(status.message(), "the program is illegal after import: it is negative");
}

TEST(PassRunner, AnErrorOfTheCallbackIsBlamedOnThePass) {
  Number n{5};
  const auto after = [](const PassRun&, const Number& now) {
    return now.value == 3 ? absl::DataLossError("it should not be three") : absl::OkStatus();
  };
  EXPECT_EQ(Message(RunPasses<Number>(kPasses, n, {.after = after})), "after pass decrease: it should not be three");
}

TEST(PassRunner, AReproducerThatCannotBeWrittenDoesNotHideTheError) {
  Number n{0};
  const absl::Status status =
      RunPasses<Number>(kPasses, n, {.verify = true, .reproducer = {.folder = "/dev/null/repro"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Message(status), HasSubstr("it is negative; its reproducer could not be written to /dev/null/repro/"));
}

TEST(PassRunner, OnlyBugsSkipsReproducersOfRejectedSchedules) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder.ok());
  const PassOptions<Number> options = ReproducerPassOptions<Number>((*folder / "repro").string());
  Number refused{5}, broken{0};
  EXPECT_EQ(Message(RunPasses<Number>(kPasses, refused, options)), "pass refuse: not today");
  EXPECT_FALSE(std::filesystem::exists(*folder / "repro"));
  EXPECT_THAT(Message(RunPasses<Number>(kPasses, broken, options)), HasSubstr("to see it again: hone-opt "));
  EXPECT_TRUE(std::filesystem::exists(*folder / "repro"));
  EXPECT_EQ(ReproducerPassOptions<Number>("").verify, kDevBuild);
}

TEST(PassRunner, NoReproducerWhereNothingFails) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder.ok());
  Number n{5};
  EXPECT_TRUE(RunPasses<Number>(std::span(kPasses).first(3), n,
                                {.verify = true, .reproducer = {.folder = (*folder / "repro").string()}})
                  .ok());
  EXPECT_FALSE(std::filesystem::exists(*folder / "repro"));
}

TEST(SelectPasses, TakesNamesInTheOrderOfTheList) {
  const auto passes = SelectPasses<Number>(kPasses, " clamp, decrease,,clamp ");
  ASSERT_TRUE(passes.ok());
  EXPECT_EQ(JoinNames<Number>(*passes), "clamp,decrease,clamp");
  EXPECT_EQ(JoinNames<Number>(*SelectPasses<Number>(kPasses, "all,clamp")), "decrease,clamp,decrease,refuse,clamp");
}

TEST(SelectPasses, AnUnknownNameListsTheKnownOnesOnce) {
  EXPECT_EQ(Message(SelectPasses<Number>(kPasses, "clamp,inline").status()),
            "there is no pass 'inline' here; there are: decrease, clamp, refuse, and all");
}

}  // namespace hone::countdown
