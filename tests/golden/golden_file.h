// SPDX-License-Identifier: Apache-2.0
// Test support: golden files of one input each: a text, a line "----", and what comes of it.
#ifndef HONE_TESTS_GOLDEN_GOLDEN_FILE_H_
#define HONE_TESTS_GOLDEN_GOLDEN_FILE_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hone::tests {

struct GoldenFile {
  std::filesystem::path path;
  std::string input;     // up to the line ----; ends with a newline
  std::string expected;  // what follows it
};

// Those of tests/golden/FOLDER, sorted by name.
std::vector<GoldenFile> ReadGoldenFiles(std::string_view folder);
// With HONE_UPDATE_GOLDEN set in the environment, writes the file anew with `actual` as what is expected. Else nothing.
void UpdateGoldenFile(const GoldenFile& golden, std::string_view actual);

}  // namespace hone::tests

#endif  // HONE_TESTS_GOLDEN_GOLDEN_FILE_H_
