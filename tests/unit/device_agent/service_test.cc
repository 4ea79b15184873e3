// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

TEST(RestartService, SaysThatItRunsOnlyWhereItDoes) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = std::getenv("PATH"), program = folder / "systemctl", asked = folder / "asked";
  const auto restart = [&](const std::string& script) {
    std::ofstream(program) << "#!/bin/sh\necho \"$*\" >> " << asked << "\n" << script << "\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
    const absl::Status runs = RestartService(folder.path());
    setenv("PATH", path.c_str(), 1);
    return runs;
  };
  EXPECT_EQ(restart("exit 0"), absl::OkStatus());
  std::string line;
  std::getline(std::ifstream(asked), line);
  EXPECT_EQ(line, "restart hone-agent.service");
  // As where the unit waits for a certificate that is not there.
  EXPECT_THAT(std::string(restart("[ $1 = restart ] || { echo inactive; exit 3; }").message()), HasSubstr("inactive"));
  EXPECT_THAT(std::string(restart("echo it failed >&2; exit 1").message()), HasSubstr("it failed"));
  EXPECT_THAT(std::string(RestartService(folder / "none").message()),
              HasSubstr("systemd is not running on this machine"));
}

}  // namespace
}  // namespace hone::agent
