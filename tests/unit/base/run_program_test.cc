// SPDX-License-Identifier: Apache-2.0
// RunProgram: output, errors, and the end of the program with the caller's.
#include "base/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST(RunProgram, FailingProgramIsAnErrorWithItsOutput) {
  const absl::Status status = RunProgram({"sh", "-c", "echo it is broken >&2; exit 3"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it is broken"));
}

TEST(RunProgram, MissingProgramIsNotFound) {
  const absl::Status status = RunProgram({"/there/is/no/such/program"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/there/is/no/such/program"));
}

TEST(RunProgram, DiesWithTheCallingThread) {
  int living[2];  // reaches its end once the program, which holds the writing end, has ended
  ASSERT_EQ(pipe(living), 0);
  const pid_t runner = fork();
  if (runner == 0) {
    // The program writes a line when it has started.
    (void)RunProgram({"sh", "-c", "echo > /dev/fd/" + std::to_string(living[1]) + "; exec sleep 60"});
    _exit(1);
  }
  close(living[1]);
  char said = 0;
  ASSERT_EQ(read(living[0], &said, 1), 1);
  kill(runner, SIGKILL);
  ASSERT_EQ(waitpid(runner, nullptr, 0), runner);
  pollfd end{living[0], POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 20'000), 1) << "it lives on";
  close(living[0]);
}

TEST(FindProgram, SearchesPath) {
  EXPECT_THAT(FindProgram("sh"), HasSubstr("/sh"));
  EXPECT_EQ(FindProgram("there-is-no-such-program"), "");
}

}  // namespace
}  // namespace hone
