// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/golden_file.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace hone::tests {
namespace {

constexpr std::string_view kSeparator = "\n----\n";

}  // namespace

std::vector<GoldenFile> ReadGoldenFiles(std::string_view folder) {
  std::vector<GoldenFile> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(HONE_SOURCE_DIR) / "tests/golden" / folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const size_t end = text.find(kSeparator);
    if (end == std::string::npos) {
      files.push_back({entry.path(), text, "a line ---- and what is expected"});
    } else {
      files.push_back({entry.path(), text.substr(0, end + 1), text.substr(end + kSeparator.size())});
    }
  }
  std::ranges::sort(files, {}, &GoldenFile::path);
  return files;
}

void UpdateGoldenFile(const GoldenFile& golden, std::string_view actual) {
  if (std::getenv("HONE_UPDATE_GOLDEN") == nullptr) return;
  std::ofstream(golden.path, std::ios::binary) << golden.input << "----\n" << actual;
}

}  // namespace hone::tests
