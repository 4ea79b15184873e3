// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/shell_word.h"

namespace hone::tracker {
namespace {

// Returns the output of a shell command.
std::string Printed(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  pclose(pipe);
  return output;
}

records::Record Sample() {
  records::Record record;
  record.key.target = "x86_64 -mcpu=znver4";
  record.workload_text = "workload \"w\"\noutput t0\n";
  record.schedule = "split i0 4 mask";
  return record;
}

TEST(CommandsTest, AWordIsOneWordToTheShell) {
  EXPECT_EQ(ShellWord("0af1"), "0af1");
  for (const char* text :
       {"", "a b", "'; echo gone; '", "$(echo gone)", "`echo gone`", "a\nb", "\\", "\"", "-x", "*"}) {
    EXPECT_EQ(Printed("printf %s " + ShellWord(text)), text);
  }
}

TEST(CommandsTest, TheRecordIsPrintedByItsRow) {
  records::StoredRecord stored{.row = 12, .record = Sample()};
  stored.record.key.workload_digest = "ab; echo gone";
  EXPECT_EQ(QueryCommand(stored), "hone records query --workload 'ab; echo gone' --after 11 --limit 1 --json");
}

TEST(CommandsTest, TheKernelIsMadeOfWorkloadAndSchedule) {
  const std::string command = KernelCommand(Sample()).value();
  const std::string function = "hone-opt() { echo \"$@\"; cat; }\n";
  EXPECT_EQ(Printed("bash -c " + ShellWord(function + command)),
            "- --target x86_64 -mcpu=znver4 --passes=all\n"
            "workload \"w\"\noutput t0\nschedule\nsplit i0 4 mask\n");
}

TEST(CommandsTest, NothingInARecordBecomesACommand) {
  records::Record evil = Sample();
  evil.key.target = "x'; echo gone; '";
  evil.workload_text = "END\nEOF\n$(echo gone)\n`echo gone`\n";
  const std::string function = "hone-opt() { cat > /dev/null; }\n";
  EXPECT_EQ(Printed("bash -c " + ShellWord(function + KernelCommand(evil).value())), "");
  evil.schedule = "\x1b]0;title\x07";
  EXPECT_EQ(KernelCommand(evil), std::nullopt);
  evil = Sample();
  evil.key.target = "a\nb";
  EXPECT_EQ(KernelCommand(evil), std::nullopt);
}

}  // namespace
}  // namespace hone::tracker
