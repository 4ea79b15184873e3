// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/passes/golden_case.h"

namespace hone::opt {

std::vector<tests::GoldenFile> ReadGoldenCases() { return tests::ReadGoldenFiles("passes"); }

std::string ActualOf(const tests::GoldenFile& golden, const PassTables& tables) {
  const absl::StatusOr<std::string> result = Opt(golden.input, {.verify_each = true}, tables);
  return result.ok() ? *result : "error: " + std::string(result.status().message()) + "\n";
}

}  // namespace hone::opt
