// SPDX-License-Identifier: Apache-2.0
// Passes on random funcs: the results must stay the same to the bit.
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/text.h"
#include "compiler/opt/opt.h"
#include "tests/unit/ir/random_ir.h"

namespace hone::opt {
namespace {

TEST(RandomFuncs, PassesKeepWhatTheyCompute) {
  constexpr int kFuncs = 300;
  for (int seed = 0; seed < kFuncs; ++seed) {
    const std::string text = ir::Print(ir::RandomIr(seed, ir::RandomIr::Indices::kSmall).MakeFunc());
    for (const char* passes : {"simplify", "flatten", "unroll", "simplify,peel,flatten,simplify,peel_ends,unroll"}) {
      const absl::StatusOr<std::string> result = Opt(text, {.passes = passes, .verify_each = true, .interpret = true});
      ASSERT_TRUE(result.ok()) << result.status() << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace hone::opt
