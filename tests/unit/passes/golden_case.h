// SPDX-License-Identifier: Apache-2.0
// The golden files of the passes in tests/golden/passes. Each has a text for hone-opt with a list of passes, and the
// expected result: the printed program, or "error: " and the message.
#ifndef HONE_TESTS_UNIT_PASSES_GOLDEN_CASE_H_
#define HONE_TESTS_UNIT_PASSES_GOLDEN_CASE_H_

#include <string>
#include <vector>

#include "compiler/opt/opt.h"
#include "tests/golden/golden_file.h"

namespace hone::opt {

// Returns all golden files, sorted by name.
std::vector<tests::GoldenFile> ReadGoldenCases();
// Runs the passes of the file on its input, with a verification after every pass, and returns the result as text.
std::string ActualOf(const tests::GoldenFile& golden, const PassTables& tables = {});

// Returns the table with the pass of the same name replaced.
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
