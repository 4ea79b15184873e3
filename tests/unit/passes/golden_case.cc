#include "tests/unit/passes/golden_case.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace hone::opt {
namespace {

constexpr std::string_view kSeparator = "\n----\n";

}  // namespace

std::vector<GoldenCase> ReadGoldenCases() {
  std::vector<GoldenCase> cases;
  for (const auto& entry : std::filesystem::directory_iterator(HONE_SOURCE_DIR "/tests/golden/passes")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const size_t end = text.find(kSeparator);
    if (end == std::string::npos) {
      cases.push_back({entry.path(), text, "a line ---- and what is expected"});
    } else {
      cases.push_back({entry.path(), text.substr(0, end + 1), text.substr(end + kSeparator.size())});
    }
  }
  std::sort(cases.begin(), cases.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return cases;
}

std::string ActualOf(const GoldenCase& golden, const PassTables& tables) {
  const absl::StatusOr<std::string> result = Opt(golden.input, {.verify_each = true}, tables);
  return result.ok() ? *result : "error: " + std::string(result.status().message()) + "\n";
}

}  // namespace hone::opt
