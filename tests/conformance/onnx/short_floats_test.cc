// SPDX-License-Identifier: Apache-2.0
// The lists of cases in f16 and bf16 against the table of ONNX's operators: none is forgotten.
#include "tests/conformance/onnx/short_floats.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "compiler/graph/ops/signatures.h"
#include "gtest/gtest.h"
#include "tests/conformance/onnx/case_lists.h"

namespace hone::conformance {
namespace {

// The operators with a case in this type that passes.
std::set<std::string> Covered(const std::string& type) {
  const std::pair<std::string, std::string> kSuites[] = {
      {HONE_ONNX_TESTDATA, std::string(HONE_CASE_LISTS) + "/" + type},
      {HONE_NEWER_CASES, std::string(HONE_CASE_LISTS) + "/newer/" + type}};
  std::set<std::string> covered;
  for (const auto& [data, lists] : kSuites) {
    const auto cases = ReadCaseList(lists + "/supported.txt");
    EXPECT_TRUE(cases.ok()) << cases.status();
    const auto ops = OperatorsOf(data, *cases);
    EXPECT_TRUE(ops.ok()) << ops.status();
    covered.insert(ops->begin(), ops->end());
  }
  return covered;
}

// The operators of ONNX's newest opset.
std::set<std::string> Current() {
  std::map<std::string, bool> is_deprecated;
  for (const graph::OpSignature& row : graph::AllSignatures()) is_deprecated[std::string(row.name)] = row.deprecated;
  std::set<std::string> current;
  for (const auto& [op, deprecated] : is_deprecated) {
    if (!deprecated) current.insert(op);
  }
  return current;
}

class ShortFloats : public testing::TestWithParam<const char*> {};

TEST_P(ShortFloats, EveryOperatorHasACaseOrAReason) {
  if (!std::filesystem::exists(HONE_NEWER_CASES)) GTEST_SKIP() << "the newer cases are missing";
  const std::set<std::string> covered = Covered(GetParam()), current = Current();
  const auto reasons = ReadReasons(std::string(HONE_CASE_LISTS) + "/" + GetParam() + "/operators.txt");
  ASSERT_TRUE(reasons.ok()) << reasons.status();
  for (const std::string& op : current) {
    EXPECT_TRUE(covered.contains(op) || reasons->contains(op))
        << "no case of " << op << " passes in " << GetParam()
        << "; add one, or a line in operators.txt with the reason";
  }
  for (const auto& [op, reason] : *reasons) {
    EXPECT_TRUE(current.contains(op)) << op << " is no current operator of ONNX";
    EXPECT_FALSE(covered.contains(op)) << op << " has a case that passes; remove its line from operators.txt";
    EXPECT_FALSE(reason.empty()) << op;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ShortFloats, testing::Values("f16", "bf16"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hone::conformance
