// Programs that are run to their end.
#include "base/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

using ::testing::HasSubstr;

TEST(RunProgram, KeepsWhatIsWrittenToEitherStream) {
  const absl::StatusOr<std::string> text = RunProgram({"sh", "-c", "echo one; echo two >&2; echo \"$0\"", "three"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "one\ntwo\nthree\n");
}

TEST(RunProgram, KeepsMoreThanAPipeHolds) {
  const absl::StatusOr<std::string> text = RunProgram({"sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, std::string(300000, 'x'));
}

TEST(RunProgram, AnotherStatusThan0IsAnErrorThatSaysWhatWasWritten) {
  const absl::Status status = RunProgram({"sh", "-c", "echo it is broken >&2; exit 3"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it is broken"));
}

TEST(RunProgram, SaysThatAProgramIsNotThere) {
  const absl::Status status = RunProgram({"/there/is/no/such/program"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/there/is/no/such/program"));
}

TEST(FindProgram, LooksOnPath) {
  EXPECT_THAT(FindProgram("sh"), HasSubstr("/sh"));
  EXPECT_EQ(FindProgram("there-is-no-such-program"), "");
}

}  // namespace
}  // namespace hone
