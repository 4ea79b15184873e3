// SPDX-License-Identifier: Apache-2.0
#include "base/code_kind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace hone {
namespace {

TEST(CodeKind, EveryKindHasItsOwnNameAndArchitecture) {
  std::set<std::string_view> names, architectures;
  uint32_t number = 1;
  for (; const auto entry = FindCodeKind(CodeKind{number}); ++number) {
    EXPECT_TRUE(names.insert(entry->name).second) << entry->name;
    EXPECT_TRUE(architectures.insert(entry->architecture).second) << entry->architecture;
    EXPECT_FALSE(entry->name.empty() || entry->architecture.empty()) << number;
  }
  EXPECT_GT(number, 4u);
  EXPECT_FALSE(FindCodeKind(CodeKind{0}).has_value());
  EXPECT_FALSE(FindCodeKind(CodeKind{0xffffffff}).has_value());
}

TEST(CodeKind, CpusHaveTheFeaturesOfTheirTable) {
  const auto has = [](CodeKind kind, std::string_view feature) {
    const auto features = FindCodeKind(kind)->cpu_features;
    return std::ranges::find(features, feature) != features.end();
  };
  EXPECT_TRUE(has(CodeKind::kX86_64, "avx512vnni"));
  EXPECT_FALSE(has(CodeKind::kX86_64, "dotprod"));
  EXPECT_TRUE(has(CodeKind::kAArch64, "dotprod"));
  EXPECT_TRUE(has(CodeKind::kArm, "neon"));
  EXPECT_TRUE(FindCodeKind(CodeKind::kOpenCl)->cpu_features.empty());
}

}  // namespace
}  // namespace hone
