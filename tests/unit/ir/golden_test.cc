// SPDX-License-Identifier: Apache-2.0
// Runs tests/golden/ir/*.golden. A file has sections, each opened by "=== <what>". The first is the input (func or
// workload); then follow any of print, error, verify, canonical, digest, flops.
//
// HONE_UPDATE_GOLDEN=1 rewrites the expectations with the current results, and the test fails all the same: review the
// difference, then run it again without the variable.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/workload.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

namespace fs = std::filesystem;

struct Section {
  std::string what, text;
};

std::vector<Section> ReadSections(const fs::path& path) {
  std::ifstream file(path);
  std::vector<Section> sections;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("=== ")) {
      sections.push_back({line.substr(4), ""});
    } else if (!sections.empty()) {
      sections.back().text += line + "\n";
    }
  }
  return sections;
}

std::string Verdict(const absl::Status& status) { return (status.ok() ? "ok" : std::string(status.message())) + "\n"; }

std::string ActualOf(const Func& func, const std::string& what) {
  if (what == "print") return Print(func);
  if (what == "verify") return Verdict(Verify(func));
  return "there is no section '" + what + "' for a func\n";
}

std::string ActualOf(const Workload& workload, const std::string& what) {
  if (what == "print") return Print(workload);
  if (what == "verify") return Verdict(Verify(workload));
  if (what == "canonical") return Print(Canonicalize(workload));
  if (what == "digest") return WorkloadDigest(workload) + "\n";
  if (what == "flops") return fmt::format("{}\n", CountFlops(workload));
  return "there is no section '" + what + "' for a workload\n";
}

template <typename Parsed>
std::string ActualOf(const Parsed& parsed, const std::string& what) {
  if (what == "error") return Verdict(parsed.status());
  return parsed.ok() ? ActualOf(*parsed, what) : Verdict(parsed.status());
}

std::string ActualOf(const Section& input, const std::string& what) {
  return input.what == "func" ? ActualOf(ParseFunc(input.text), what) : ActualOf(ParseWorkload(input.text), what);
}

std::vector<fs::path> GoldenFiles() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(HONE_SOURCE_DIR) / "tests/golden/ir")) {
    if (entry.path().extension() == ".golden") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Golden, FilesAreAsExpected) {
  const bool update = std::getenv("HONE_UPDATE_GOLDEN") != nullptr;
  const std::vector<fs::path> files = GoldenFiles();
  ASSERT_FALSE(files.empty());
  for (const fs::path& path : files) {
    std::vector<Section> sections = ReadSections(path);
    ASSERT_GE(sections.size(), 2u) << path;
    ASSERT_TRUE(sections[0].what == "func" || sections[0].what == "workload") << path;
    for (size_t i = 1; i < sections.size(); ++i) {
      const std::string actual = ActualOf(sections[0], sections[i].what);
      EXPECT_EQ(actual, sections[i].text) << path << ", section " << sections[i].what;
      sections[i].text = actual;
    }
    if (!update) continue;
    std::ofstream file(path);
    for (const Section& section : sections) file << "=== " << section.what << "\n" << section.text;
  }
}

}  // namespace
}  // namespace hone::ir
