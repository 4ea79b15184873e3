// SPDX-License-Identifier: Apache-2.0
#include "tuner/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/temporary_folder.h"

namespace hone::tuner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What the shell command prints in a child process.
std::string OutputOf(const std::string& command, uint64_t memory_max = 0) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "output";
  auto child =
      ChildProcess::Start({.command = {"/bin/sh", "-c", command + " > " + path}, .memory_max = memory_max}).value();
  while (!child.Ended()) usleep(1000);
  EXPECT_EQ(child.Kill(), 0);
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ChildProcessTest, SecretsOfTheTunerStayWithTheTuner) {
  setenv("SECRET_OF_THE_TUNER", "x", 1);
  setenv("HONE_TOKEN", "x", 1);
  setenv("LANG", "C", 1);
  setenv("HONE_ONNX_RUNTIME", "/there", 1);
  EXPECT_THAT(OutputOf("env"), AllOf(HasSubstr("PATH="), HasSubstr("LANG=C"), HasSubstr("HONE_ONNX_RUNTIME=/there"),
                                     Not(HasSubstr("SECRET_OF_THE_TUNER")), Not(HasSubstr("HONE_TOKEN"))));
  for (const char* name : {"SECRET_OF_THE_TUNER", "HONE_TOKEN", "LANG", "HONE_ONNX_RUNTIME"}) unsetenv(name);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ChildProcessTest, MemoryIsLimited) { EXPECT_EQ(OutputOf("ulimit -v", uint64_t{1} << 30), "1048576\n"); }
#endif

}  // namespace
}  // namespace hone::tuner
