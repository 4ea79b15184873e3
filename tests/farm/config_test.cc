// SPDX-License-Identifier: Apache-2.0
// hone-tracker --config FILE, with the real program, and the file that packaging/tracker has for a service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "tests/farm/processes.h"

namespace hone::farm {
namespace {

using ::testing::HasSubstr;

constexpr char kServiceConfig[] = HONE_SOURCE_DIR "/packaging/tracker/tracker.conf";
constexpr char kServiceUnit[] = HONE_SOURCE_DIR "/packaging/tracker/hone-tracker.service";

class ConfigTest : public testing::Test {
 protected:
  std::filesystem::path Write(const std::string& text) {
    std::ofstream(folder_ / "tracker.conf") << text;
    return folder_ / "tracker.conf";
  }
  // Runs a tracker that ends on its own and returns its exit status. Its output is in said_.
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), HONE_TRACKER_BINARY);
    Process process(arguments, folder_ / "log");
    const int status = process.Wait();
    said_ = process.Log();
    return status;
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::string said_;
};

TEST_F(ConfigTest, CommandLineOverridesConfigFile) {
  const std::string of_file = folder_ / "of_file", given = folder_ / "given";
  const std::string config =
      Write("listen = \"unix:" + (folder_ / "socket").string() + "\"\nrecords = \"" + (folder_ / "records").string() +
            "\"\nport-file = \"" + of_file + "\"\nkeep-jobs = 5\nrequire-sandbox = filter\ndie-with-parent = true\n");
  Process tracker({HONE_TRACKER_BINARY, "--config", config, "--port-file", given}, folder_ / "log");
  ASSERT_TRUE(Eventually([&] { return std::ifstream(given).good() || !tracker.Running(); }));
  EXPECT_TRUE(std::ifstream(given).good()) << tracker.Log();
  EXPECT_FALSE(std::ifstream(of_file).good());
  EXPECT_TRUE(std::ifstream(folder_ / "records").good());
  tracker.Signal(SIGTERM);
  EXPECT_EQ(tracker.Wait(), 0);
}

TEST_F(ConfigTest, UnknownOptionsAreErrors) {
  const std::string config = Write("records = \"r\"\nlisen = \"unix:/tmp/x\"\n");
  EXPECT_EQ(Run({"--config", config}), 2);
  EXPECT_THAT(said_, HasSubstr(config + ":2: there is no option 'lisen'; the nearest one is 'listen'"));
  EXPECT_EQ(Run({"--config", Write("keep-jobs = many\n")}), 2);
  EXPECT_THAT(said_, HasSubstr("keep-jobs"));
  EXPECT_EQ(Run({"--config", Write("config = \"another\"\n")}), 2);
  EXPECT_EQ(Run({"--config", folder_ / "none"}), 2);
  EXPECT_THAT(said_, HasSubstr("File does not exist"));
}

TEST_F(ConfigTest, AFileThatCannotBeWrittenIsNamedWithTheReason) {
  const std::string file = folder_ / "none/address";
  EXPECT_EQ(
      Run({"--listen", "unix:" + (folder_ / "socket").string(), "--records", folder_ / "records", "--port-file", file}),
      1);
  EXPECT_THAT(said_, HasSubstr("cannot write the port file " + file + ": No such file or directory; name a file"));
}

// Options that are commented out in the service's file must work without preparation: the systemd unit creates their
// folders.
TEST_F(ConfigTest, ServiceUnitCreatesConfiguredFolders) {
  std::stringstream file, unit;
  file << std::ifstream(kServiceConfig).rdbuf();
  unit << std::ifstream(kServiceUnit).rdbuf();
  const std::string text = file.str();
  const std::regex folder("\"/run/([^/\"]+)/");
  for (std::sregex_iterator at(text.begin(), text.end(), folder), end; at != end; ++at) {
    EXPECT_THAT(unit.str(), HasSubstr("\nRuntimeDirectory=" + (*at)[1].str() + "\n"));
  }
}

// The tracker must accept every option of the file, commented out or not.
TEST_F(ConfigTest, ServiceConfigNamesEveryOption) {
  std::stringstream file;
  file << std::ifstream(kServiceConfig).rdbuf();
  ASSERT_EQ(Run({"--help"}), 0);
  const std::regex option("\n +--([a-z-]+)");
  int options = 0;
  for (std::sregex_iterator at(said_.begin(), said_.end(), option), end; at != end; ++at) {
    const std::string name = (*at)[1];
    if (name == "config") continue;
    ++options;
    EXPECT_TRUE(std::regex_search(file.str(), std::regex("\n(# )?" + name + " = "))) << name;
  }
  EXPECT_GT(options, 8);
  const std::string all = std::regex_replace(file.str(), std::regex("\n# ([a-z-]+ = )"), "\n$1");
  EXPECT_EQ(Run({"--config", Write(all), "--listen", "unix:/tmp/x/y", "--pki", "z"}), 1);
  EXPECT_THAT(said_, testing::Not(HasSubstr("tracker.conf:")));
}

}  // namespace
}  // namespace hone::farm
