// SPDX-License-Identifier: Apache-2.0
// Checks the examples of docs/IR.md: every fenced block marked as a func or a workload must parse, be legal, and be
// written as the printer writes it.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/workload.h"

namespace hone::ir {
namespace {

void CheckFunc(const std::string& text) {
  const auto func = ParseFunc(text);
  ASSERT_TRUE(func.ok()) << func.status() << "\n" << text;
  EXPECT_TRUE(Verify(*func).ok()) << Verify(*func);
  EXPECT_EQ(Print(*func), text);
}

void CheckWorkload(const std::string& text) {
  const auto workload = ParseWorkload(text);
  ASSERT_TRUE(workload.ok()) << workload.status() << "\n" << text;
  EXPECT_EQ(Print(Canonicalize(*workload)), text);
}

TEST(Doc, ExamplesParseAndAreCanonical) {
  std::ifstream file(std::string(HONE_SOURCE_DIR) + "/docs/IR.md");
  ASSERT_TRUE(file.good());
  std::string block, fence;
  int funcs = 0, workloads = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("```")) {
      if (!fence.empty()) block += line + "\n";
    } else if (fence.empty()) {
      fence = line;
      block.clear();
    } else {
      if (fence == "```func") CheckFunc(block), ++funcs;
      if (fence == "```workload") CheckWorkload(block), ++workloads;
      fence.clear();
    }
  }
  EXPECT_GE(funcs, 1);
  EXPECT_GE(workloads, 1);
}

}  // namespace
}  // namespace hone::ir
