// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/float_casts.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "base/half_float.h"
#include "base/random.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/text.h"
#include "tests/unit/ir/eval_text.h"

namespace hone::ir {
namespace {

constexpr int64_t kCount = 1 << 16;

// The value that a func stores for each element i of its inputs.
Expr StoredValue(const Func& func) {
  const For* loop = func.body.As<For>();
  return loop->body.As<Store>()->value;
}

Func FuncOf(std::string_view type, std::string_view value) {
  std::string text = "func f(x: f32[65536], h: f16[65536], b: bf16[65536], out: ";
  text.append(type).append("[65536]) {\n  for i in 65536 {\n    out[i] = ").append(value).append("\n  }\n}\n");
  const auto func = ParseFunc(text);
  EXPECT_TRUE(func.ok()) << func.status() << text;
  return *func;
}

// All numbers of f16 and bf16, and random floats: near the numbers of f16, near 0, and any.
std::vector<Bytes> Inputs() {
  std::vector<Bytes> inputs = {Bytes(kCount * 4), Bytes(kCount * 2), Bytes(kCount * 2)};
  Random random(1);
  for (int64_t i = 0; i < kCount; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    uint32_t any = static_cast<uint32_t>(random.Below(int64_t{1} << 32));
    if (i % 3 == 0)
      any = std::bit_cast<uint32_t>(static_cast<float>(FromHalfBits(bits))) + static_cast<uint32_t>(i % 5);
    if (i % 3 == 1) any &= 0xB3FFFFFF;  // at most about 1e-7
    std::memcpy(inputs[0].data() + 4 * i, &any, 4);
    std::memcpy(inputs[1].data() + 2 * i, &bits, 2);
    std::memcpy(inputs[2].data() + 2 * i, &bits, 2);
  }
  return inputs;
}

// The outputs as text. All NaNs are equal.
std::vector<std::string> OutputOf(const Func& func) {
  std::vector<Bytes> memory = Inputs();
  memory.emplace_back(static_cast<size_t>(NumBytes(*func.params.back())));
  const std::vector<std::span<std::byte>> args(memory.begin(), memory.end());
  const absl::Status status = Interpret(func, args);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::string> texts;
  const DType dtype = func.params.back()->dtype;
  for (int64_t i = 0; i < kCount; ++i) texts.push_back(ElementText(dtype, memory.back().data() + i * SizeOf(dtype)));
  return texts;
}

struct RoundTrip {
  const char *type, *value, *dropped;
};
class RoundTrips : public testing::TestWithParam<RoundTrip> {};

TEST_P(RoundTrips, AreDroppedIfNoValueChanges) {
  const Func func = FuncOf(GetParam().type, GetParam().value), expected = FuncOf(GetParam().type, GetParam().dropped);
  EXPECT_EQ(Print(DropRoundTrips(StoredValue(func))), Print(StoredValue(expected)));
  EXPECT_EQ(OutputOf(func), OutputOf(expected));
}

INSTANTIATE_TEST_SUITE_P(
    All, RoundTrips,
    testing::Values(
        RoundTrip{"f16", "f16(f32(h[i]))", "h[i]"}, RoundTrip{"bf16", "bf16(f64(b[i]))", "b[i]"},
        RoundTrip{"f32", "f32(f16(f32(h[i])))", "f32(h[i])"},
        RoundTrip{"f32", "f32(f16(select(i >= 5, f32(h[i]), 0.5f32)))", "select(i >= 5, f32(h[i]), 0.5f32)"},
        RoundTrip{"f32", "f32(bf16(max(f32(b[i]), -0.0f32)))", "max(f32(b[i]), -0.0f32)"},
        RoundTrip{"f16", "f16(max(f32(f16(x[i])), 0.0f32))", "f16(max(x[i], 0.0f32))"},
        RoundTrip{"f16", "f16(max(f32(f16(x[i])), -0.0f32))", "f16(max(x[i], -0.0f32))"},
        RoundTrip{"f16", "f16(min(0.0f32, f32(f16(x[i]))))", "f16(min(0.0f32, x[i]))"},
        RoundTrip{"bf16", "bf16(min(f32(bf16(x[i])), f32(b[i])))", "bf16(min(x[i], f32(b[i])))"},
        RoundTrip{"f16", "f16(max(f32(f16(f32(f16(x[i])) + 1.0f32)), 6.0f32))",
                  "f16(max(f32(f16(x[i])) + 1.0f32, 6.0f32))"},
        // These round, or mix types.
        RoundTrip{"f32", "f32(f16(x[i]))", "f32(f16(x[i]))"},
        RoundTrip{"f32", "f32(f16(f32(b[i])))", "f32(f16(f32(b[i])))"},
        RoundTrip{"f32", "f32(f16(select(i >= 5, f32(h[i]), 0.1f32)))", "f32(f16(select(i >= 5, f32(h[i]), 0.1f32)))"},
        RoundTrip{"f16", "f16(max(f32(f16(x[i])), 0.1f32))", "f16(max(f32(f16(x[i])), 0.1f32))"},
        RoundTrip{"f16", "f16(max(f32(bf16(x[i])), 0.0f32))", "f16(max(f32(bf16(x[i])), 0.0f32))"},
        RoundTrip{"f16", "f16(f32(f16(x[i])) + 0.0f32)", "f16(f32(f16(x[i])) + 0.0f32)"},
        RoundTrip{"f32", "f32(i32(x[i]))", "f32(i32(x[i]))"}));

}  // namespace
}  // namespace hone::ir
