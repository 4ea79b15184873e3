// SPDX-License-Identifier: Apache-2.0
// The golden files of the passes, tests/golden/passes: a text for hone-opt with its list of passes, and what comes of
// it: the printed program, or "error: " and the message.
#ifndef HONE_TESTS_UNIT_PASSES_GOLDEN_CASE_H_
#define HONE_TESTS_UNIT_PASSES_GOLDEN_CASE_H_

#include <string>
#include <vector>

#include "compiler/opt/opt.h"
#include "tests/golden/golden_file.h"

namespace hone::opt {

// All golden files, sorted by name.
std::vector<tests::GoldenFile> ReadGoldenCases();
// The current result for the golden file's input; the program is verified after every pass.
std::string ActualOf(const tests::GoldenFile& golden, const PassTables& tables = {});

// The table with the pass of that name, wherever it stands, replaced.
template <typename Program>
std::vector<Pass<Program>> WithPass(std::span<const Pass<Program>> table, const Pass<Program>& replacement) {
  std::vector<Pass<Program>> passes(table.begin(), table.end());
  for (Pass<Program>& pass : passes) {
    if (pass.name == replacement.name) pass = replacement;
  }
  return passes;
}

}  // namespace hone::opt

#endif  // HONE_TESTS_UNIT_PASSES_GOLDEN_CASE_H_
