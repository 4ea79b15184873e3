// PTX for CUDA: what a func with a grid becomes, as text. Nothing runs here; that a ptxas accepts it is shown by
// conformance_onnx_ptx_*.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/codegen/codegen.h"
#include "compiler/ir/text.h"

namespace hone::codegen {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Ptx(const std::string& func, const std::string& target = "cuda:sm_87") {
  const auto parsed = ir::ParseFunc(func);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const auto ptx = Emit({&*parsed, 1}, *target::ParseTarget(target));
  EXPECT_TRUE(ptx.ok()) << ptx.status();
  return ptx.value_or("");
}

TEST(Cuda, AKernelHasItsGridItsMemoryAndItsBarriers) {
  const std::string ptx = Ptx(R"(
func reverse(x: i64[8], y: i64[8]) grid 2 lanes 4 {
  alloc row: i64[4] shared {
    row[lane.id] = x[group.id * 4 + lane.id]
    barrier
    y[group.id * 4 + lane.id] = row[3 - lane.id]
  }
})");
  EXPECT_THAT(ptx, AllOf(HasSubstr(".target sm_87"), HasSubstr(".visible .entry reverse("), HasSubstr(".reqntid 4")));
  EXPECT_THAT(ptx, AllOf(HasSubstr(".shared .align 64"), HasSubstr("bar.sync \t0;"), HasSubstr("st.shared.u64")));
  EXPECT_THAT(ptx, HasSubstr("ld.global.nc.u64"));  // read by nobody else while it runs
  EXPECT_THAT(ptx, Not(HasSubstr(".local")));
}

constexpr char kCopies[] = R"(
func rows(x: f32[32], y: f32[16]) grid 1 lanes 4 {
  alloc tile: f32[16] shared {
    copy 4 tile[lane.id * 4] = x[lane.id * 4 where lane.id < 3]
    commit
    wait 0
    barrier
    y[ramp(lane.id * 4, 1, 4)] = tile[ramp(12 - lane.id * 4, 1, 4)]
  }
})";

TEST(Cuda, CopiesGoOnWithoutTheLaneWhereTheDeviceCan) {
  EXPECT_THAT(Ptx(kCopies, "cuda:sm_80"), AllOf(HasSubstr("cp.async.cg.shared.global"),
                                                HasSubstr("cp.async.commit_group"), HasSubstr("cp.async.wait_group")));
  EXPECT_THAT(Ptx(kCopies, "cuda:sm_75"), Not(HasSubstr("cp.async")));
}

TEST(Cuda, AlignedVectorsMoveAtOnce) {
  EXPECT_THAT(Ptx(kCopies), AllOf(HasSubstr("ld.shared.v4.f32"), HasSubstr("st.global.v4.f32")));
}

TEST(Cuda, NoFunctionIsMissingOnTheDevice) {
  for (const char* function : {"exp", "log", "tanh", "erf", "sigmoid", "sin", "cos", "tan", "asin", "acos", "atan",
                               "sinh", "cosh", "asinh", "acosh", "atanh"}) {
    for (const std::string type : {"f32", "f64"}) {
      const std::string ptx = Ptx("func f(x: " + type + "[4], y: " + type +
                                  "[4]) grid 1 lanes 4 {\n  y[lane.id] = " + function + "(x[lane.id])\n}");
      EXPECT_THAT(ptx, AllOf(HasSubstr("st.global"), Not(HasSubstr(".extern")))) << function << " of " << type;
    }
  }
}

}  // namespace
}  // namespace hone::codegen
