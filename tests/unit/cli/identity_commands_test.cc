// SPDX-License-Identifier: Apache-2.0
// The commands for certificates and members as a user runs them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/temporary_folder.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;
using tests::CommandResult;

CommandResult RunHone(const std::string& arguments) {
  return tests::RunCommand("(" HONE_PROGRAM " " + arguments + ")");
}

TEST(IdentityCommandsTest, CertificatesAreMadeForScripts) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const CommandResult farm = RunHone(
      fmt::format("pki init --dir {} --tracker farm.lab:9190 --host 10.0.0.1 --json", (folder / "pki").string()));
  ASSERT_EQ(farm.exit_code, 0) << farm.output;
  EXPECT_EQ(nlohmann::json::parse(farm.output), nlohmann::json({{"dir", (folder / "pki").string()},
                                                                {"tracker", "farm.lab:9190"},
                                                                {"hosts", {"farm.lab", "10.0.0.1"}},
                                                                {"admin", "admin"},
                                                                {"identity", (folder / "pki/admin").string()}}));
  const CommandResult issued =
      RunHone(fmt::format("pki issue --dir {} --role client --name ann --identity {} --tracker farm.lab:9190 --json",
                          (folder / "pki").string(), (folder / "ann").string()));
  ASSERT_EQ(issued.exit_code, 0) << issued.output;
  EXPECT_EQ(nlohmann::json::parse(issued.output),
            nlohmann::json({{"role", "client"}, {"name", "ann"}, {"identity", (folder / "ann").string()}}));
}

TEST(IdentityCommandsTest, ATrackerOnASocketHasNoIdentities) {
  for (const char* command :
       {"audit", "identity list", "identity revoke x", "token list", "token create --role agent"}) {
    const CommandResult result = RunHone(std::string(command) + " --tracker unix:/tmp/no.socket");
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_THAT(result.output, HasSubstr("has no identities, tokens or audit")) << command;
  }
}

}  // namespace
}  // namespace hone::cli
