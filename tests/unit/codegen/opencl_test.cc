// SPDX-License-Identifier: Apache-2.0
// Compares OpenCL C with the interpreter on this machine's OpenCL device: every operator, type and form of access.
//
// The kernels of a test are built as one program, since each build costs the device's compiler most of its time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>

#include "base/half_float.h"
#include "base/random.h"
#include "compiler/codegen/opencl/emit.h"
#include "compiler/execution/model.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/match.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/text.h"
#include "compiler/ir/typing.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"
#include "tests/unit/drivers/opencl_device.h"
#include "tests/unit/ir/random_ir.h"
#include "tests/unit/space/pipelines.h"

namespace hone::codegen {
namespace {

using drivers::opencl::Buffer;
using drivers::opencl::Kernel;
using drivers::opencl::Launch;
using drivers::opencl::Program;
using ir::BinaryOp;
using ir::Bytes;
using ir::DType;
using ir::Expr;
using ::testing::HasSubstr;

class OpenClCode : public tests::OpenClTest {
 protected:
  // Runs the funcs on the device and in the interpreter, on equal memory, and compares all params. Integers must have
  // equal bits. Floats must have equal bits, except for the payload of a NaN, or be within tolerance * value.
  void Check(const std::vector<ir::Func>& funcs, double tolerance = 0);
  void CheckText(const std::vector<std::string>& texts, double tolerance = 0);

 private:
  void Compare(const ir::Func& func, const Program& program, double tolerance);
};

// The element as a double for comparing; integers as their bits.
double FloatAt(DType dtype, const std::byte* at) {
  const auto bits = [&]<typename T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  if (dtype == DType::kFloat16) return FromHalfBits(bits(uint16_t{}));
  if (dtype == DType::kBFloat16) return FromBFloatBits(bits(uint16_t{}));
  return dtype == DType::kFloat32 ? static_cast<double>(bits(float{})) : bits(double{});
}

bool Agree(DType dtype, const std::byte* a, const std::byte* b, double tolerance) {
  if (std::memcmp(a, b, static_cast<size_t>(ir::SizeOf(dtype))) == 0) return true;
  if (!ir::IsFloat(dtype)) return false;
  const double x = FloatAt(dtype, a), y = FloatAt(dtype, b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return std::abs(x - y) <= tolerance * std::abs(y);
}

std::string Hex(DType dtype, const std::byte* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(ir::SizeOf(dtype)));
  return ir::IsFloat(dtype) ? fmt::format("{:#x} ({})", bits, FloatAt(dtype, at)) : fmt::format("{:#x}", bits);
}

// Values that arithmetic often gets wrong, then random ones.
Bytes Contents(const ir::BufferNode& buffer, Random& random) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kFloats[] = {0.0,       -0.0,       1.0,          -1.0,  0.5,  2.5,   -3.5,
                                kInfinity, -kInfinity, std::nan(""), 1e-40, 3e38, 127.5, -128.9,
                                65519,     65520,      2147483647.0, -3e9,  1e19, 6e-8};
  const int64_t lowest = ir::IsInt(buffer.dtype) ? ir::LowestInt(buffer.dtype) : 0;
  const int64_t highest = ir::IsInt(buffer.dtype) ? ir::HighestInt(buffer.dtype) : 1;
  const int64_t ints[] = {0,
                          1,
                          -1,
                          lowest,
                          highest,
                          lowest + 1,
                          2,
                          3,
                          -7,
                          7,
                          8 * ir::SizeOf(buffer.dtype) - 1,
                          8 * ir::SizeOf(buffer.dtype),
                          5};
  const auto size = static_cast<size_t>(ir::SizeOf(buffer.dtype));
  Bytes bytes(static_cast<size_t>(ir::NumBytes(buffer)));
  for (size_t i = 0; i * size < bytes.size(); ++i) {
    int64_t bits = i < std::size(ints) ? ints[i] : static_cast<int64_t>(random.Next());
    if (buffer.dtype == DType::kBool) bits &= 1;
    const double value = i < std::size(kFloats)
                             ? kFloats[i]
                             : std::ldexp(random.Uniform() - 0.5, static_cast<int>(random.Below(60)) - 30);
    if (buffer.dtype == DType::kFloat16) bits = HalfBits(value);
    if (buffer.dtype == DType::kBFloat16) bits = BFloatBits(value);
    if (buffer.dtype == DType::kFloat32) bits = std::bit_cast<int32_t>(static_cast<float>(value));
    if (buffer.dtype == DType::kFloat64) bits = std::bit_cast<int64_t>(value);
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

void OpenClCode::Compare(const ir::Func& func, const Program& program, double tolerance) {
  Random random(11);
  std::vector<Bytes> expected;
  std::vector<Buffer> buffers(func.params.size());
  Kernel kernel;
  drivers::Error error = program.Find(func.name, &kernel);
  for (size_t i = 0; i < func.params.size() && error.ok(); ++i) {
    expected.push_back(Contents(*func.params[i], random));
    error = device().Allocate(expected[i].size(), &buffers[i]);
    if (error.ok()) error = device().Write(buffers[i], 0, expected[i]);
    if (error.ok()) error = kernel.SetArg(static_cast<int>(i), buffers[i]);
  }
  const Launch launch{&kernel, func.grid.groups, func.grid.lanes};
  if (error.ok()) error = device().Run(std::span(&launch, 1), tests::Soon());
  ASSERT_TRUE(error.ok()) << error.text;
  const std::vector<std::span<std::byte>> args(expected.begin(), expected.end());
  const absl::Status status = ir::Interpret(func, args);
  ASSERT_TRUE(status.ok()) << status << "\n" << ir::Print(func);
  for (size_t i = 0; i < func.params.size(); ++i) {
    const ir::BufferNode& param = *func.params[i];
    Bytes got(expected[i].size());
    ASSERT_TRUE(device().Read(buffers[i], 0, got).ok());
    const auto size = static_cast<size_t>(ir::SizeOf(param.dtype));
    for (size_t at = 0; at < got.size(); at += size) {
      ASSERT_TRUE(Agree(param.dtype, &got[at], &expected[i][at], tolerance))
          << param.name << "[" << at / size << "] is " << Hex(param.dtype, &got[at]) << ", not "
          << Hex(param.dtype, &expected[i][at]) << "\n"
          << ir::Print(func) << EmitOpenCl(std::span(&func, 1), false).value_or("");
    }
  }
}

void OpenClCode::Check(const std::vector<ir::Func>& funcs, double tolerance) {
  for (const ir::Func& func : funcs) {
    const absl::Status legal = ir::Verify(func);
    ASSERT_TRUE(legal.ok()) << legal << "\n" << ir::Print(func);
  }
  const auto source = EmitOpenCl(funcs, false);
  ASSERT_TRUE(source.ok()) << source.status();
  Program program;
  const drivers::Error built = device().Build(*source, {}, &program);
  ASSERT_TRUE(built.ok()) << built.text << "\n" << *source;
  for (const ir::Func& func : funcs) Compare(func, program, tolerance);
}

void OpenClCode::CheckText(const std::vector<std::string>& texts, double tolerance) {
  std::vector<ir::Func> funcs;
  for (size_t i = 0; i < texts.size(); ++i) {
    auto func = ir::ParseFunc(texts[i]);
    ASSERT_TRUE(func.ok()) << func.status() << "\n" << texts[i];
    func->name = fmt::format("k{}", i);
    funcs.push_back(*std::move(func));
  }
  Check(funcs, tolerance);
}

constexpr int64_t kCount = 24;        // values of a table; a multiple of all widths below
constexpr int kWidths[] = {1, 3, 4};  // 3: not a vector of OpenCL C

// out[.] = value(x, y) for all pairs of elements of two params of the type, `width` at once.
struct Table {
  Table(std::string name, DType dtype, int width)
      : width(width), a(ir::MakeBuffer("a", dtype, {kCount})), b(ir::MakeBuffer("b", dtype, {kCount})) {
    func = {std::move(name), {a, b}, {}, {kCount, 1}};
    i = ir::MakeVar(ir::kGroupVar);
    j = ir::MakeVar("j");
  }
  Expr Index(const Expr& base) const { return width == 1 ? base : ir::MakeRamp(base, 1, width); }
  Expr X() const { return ir::MakeBroadcast(ir::MakeLoad(a, {i}), width); }
  Expr Y() const { return ir::MakeLoad(b, {Index(j * Expr(width))}); }
  void Add(const Expr& value) {
    const ir::Buffer out =
        ir::MakeBuffer(fmt::format("out{}", func.params.size()), value.type().dtype, {kCount * kCount});
    func.params.push_back(out);
    stores.push_back(ir::MakeStore(out, {Index(i * Expr(kCount) + j * Expr(width))}, value));
  }
  ir::Func Done() {
    func.body = ir::MakeFor("j", Expr(kCount / width), ir::LoopKind::kSerial, ir::MakeBlock(stores));
    return func;
  }

  int width;
  ir::Buffer a, b;
  ir::Func func;
  Expr i, j;
  std::vector<ir::Stmt> stores;
};

TEST_F(OpenClCode, EveryOperatorInEveryType) {
  std::vector<ir::Func> funcs;
  for (const auto& [dtype, name, bytes] : kDTypeRows) {
    if (ir::IsStorageOnly(dtype)) continue;
    for (const int width : kWidths) {
      Table table(fmt::format("binary_{}_{}", ir::Name(dtype), width), dtype, width);
      const ir::Type type{dtype, width};
      for (int o = 0; o <= static_cast<int>(BinaryOp::kGe); ++o) {
        const auto op = static_cast<BinaryOp>(o);
        if (ir::BinaryType(op, type, type)) table.Add(ir::MakeBinary(op, table.X(), table.Y()));
      }
      for (int o = 0; o <= static_cast<int>(ir::UnaryOp::kSqrt); ++o) {
        const auto op = static_cast<ir::UnaryOp>(o);
        if (ir::UnaryType(op, type)) table.Add(ir::MakeUnary(op, table.Y()));
      }
      if (ir::IsFloat(dtype)) {
        table.Add(ir::MakeCall(type, ir::Intrinsic::kFma, {table.X(), table.Y(), table.X()}));
        for (const double zero : {0.0, -0.0}) {
          const Expr number = ir::MakeBroadcast(ir::MakeFloat(type.Element(), zero), width);
          table.Add(ir::Max(table.Y(), number));
          table.Add(ir::Min(number, table.Y()));
        }
      }
      funcs.push_back(table.Done());
    }
  }
  Check(funcs);
}

TEST_F(OpenClCode, EveryCastAndSelect) {
  std::vector<ir::Func> funcs;
  for (const auto& [dtype, name, bytes] : kDTypeRows) {
    for (const int width : kWidths) {
      Table table(fmt::format("cast_{}_{}", ir::Name(dtype), width), dtype, width);
      for (const DTypeRow& to : kDTypeRows) table.Add(ir::MakeCast({to.dtype, width}, table.Y()));
      // Rounded on the way, and not by the store.
      table.Add(ir::MakeCast({DType::kFloat32, width}, ir::MakeCast({DType::kFloat16, width}, table.Y())));
      table.Add(ir::MakeCast({DType::kFloat32, width}, ir::MakeCast({DType::kBFloat16, width}, table.Y())));
      table.Add(ir::MakeSelect(ir::MakeCast({DType::kBool, width}, table.Y()), table.X(), table.Y()));
      if (ir::IsFloat(dtype)) {
        table.Add(ir::MakeCall({DType::kBool, width}, ir::Intrinsic::kIsNan, {table.Y()}));
        table.Add(ir::MakeCall({DType::kBool, width}, ir::Intrinsic::kIsInf, {table.Y()}));
      } else if (dtype != DType::kBool) {
        for (const DType to : {DType::kInt8, DType::kUInt16, DType::kInt32, DType::kUInt64}) {
          if (ir::SizeOf(to) != ir::SizeOf(dtype)) continue;
          table.Add(ir::MakeCall({to, width}, ir::Intrinsic::kReinterpret, {table.Y()}));
        }
      }
      funcs.push_back(table.Done());
    }
  }
  Check(funcs);
}

// The interpreter uses the C library; 16 ulp is what OpenCL allows pow and erf.
TEST_F(OpenClCode, FunctionsAreWithinTheErrorsOfOpenCl) {
  std::vector<std::string> texts;
  for (const char* call : {"exp(x)", "log(abs(x))", "tanh(x)", "erf(x)", "sigmoid(x)", "pow(abs(x), 1.5f32)", "sin(x)",
                           "cos(x)", "tan(x)", "asin(x / 9f32)", "acos(x / 9f32)", "atan(x)", "sinh(x)", "cosh(x)",
                           "asinh(x)", "acosh(abs(x) + 1.5f32)", "atanh(x / 9f32)"}) {
    texts.push_back(
        fmt::format("func f(out: f32[64]) grid 8 lanes 8 {{ let x = f32(group.id * 8 + lane.id) * 0.25f32 -"
                    " 7.9f32 {{ out[group.id * 8 + lane.id] = {} }} }}",
                    call));
  }
  texts.push_back(
      "func f(x: f32[24], y: f32[24]) grid 1 lanes 3 { y[ramp(lane.id * 8, 1, 8)] = exp(max(min(x[ramp(lane.id * 8, 1,"
      " 8)], broadcast(80f32, 8)), broadcast(-80f32, 8))) + sigmoid(x[ramp(lane.id * 8, 1, 8)]) }");
  CheckText(texts, 16 * 1.2e-7);
}

TEST_F(OpenClCode, SharedMemoryAndBarriers) {
  CheckText(
      {"func f(x: i64[8], y: i64[8]) grid 2 lanes 4 { alloc row: i64[4] shared { row[lane.id] = x[group.id * 4 + "
       "lane.id]"
       " barrier y[group.id * 4 + lane.id] = row[3 - lane.id] } }",
       "func f(out: f32[3]) grid 1 lanes 3 { alloc s: f32[1] shared { alloc t: f32[1] local { t[0] = 0f32"
       " for k in 4 { if lane.id == 0 { s[0] = f32(k) } barrier t[0] = t[0] + s[0] * f32(lane.id) barrier }"
       " out[lane.id] = t[0] } } }",
       // A matrix product by tiles, both of half, and a sum over the lanes of a group.
       "func f(a: f16[64], b: bf16[64], c: f32[64]) grid 4 lanes 16 { alloc p: f16[16] shared { alloc q: bf16[16] "
       "shared {"
       " alloc total: f32[1] local { total[0] = 0f32 for k in 2 {"
       " p[lane.id] = a[(group.id // 2 * 4 + lane.id // 4) * 8 + k * 4 + lane.id %% 4]"
       " q[lane.id] = b[(k * 4 + lane.id // 4) * 8 + group.id %% 2 * 4 + lane.id %% 4] barrier"
       " for j in 4 { total[0] = total[0] + f32(p[lane.id // 4 * 4 + j]) * f32(q[j * 4 + lane.id %% 4]) } barrier }"
       " c[(group.id // 2 * 4 + lane.id // 4) * 8 + group.id %% 2 * 4 + lane.id %% 4] = total[0] } } } }",
       "func f(x: i32[64], y: i32[1]) grid 1 lanes 64 { alloc s: i32[64] shared { s[lane.id] = x[lane.id] barrier"
       " for i in 6 { if lane.id < 32 >> i { s[lane.id] = s[lane.id] + s[lane.id + (32 >> i)] } barrier }"
       " if lane.id == 0 { y[0] = s[0] } } }"});
}

// Four rows of four sums per work-item, parts of which live across a barrier. PoCL crashes if the array of all sums is
// aligned to 16 bytes.
TEST_F(OpenClCode, PrivateArraysLiveAcrossBarriers) {
  const std::string columns = "ramp(lane.id %% 5 * 4, 1, 4)";
  const std::string inside = columns + " < broadcast(17, 4)";
  std::string zeros, sums, stores;
  for (int row = 0; row < 4; ++row) {
    const std::string at = fmt::format("group.id * 32 + lane.id // 5 * 4 + {}", row);
    const std::string sum = fmt::format("t[ramp({}, 1, 4)]", row * 4);
    zeros += fmt::format(" {} = broadcast(0u8, 4)", sum);
    sums += fmt::format(
        " {0} = {0} + broadcast(select({1} < 33, q[i + lane.id // 5 * 24 + {2}], 0u8), 4) *"
        " p[ramp(lane.id %% 5 * 4 + i * 20, 1, 4) where {3}]",
        sum, at, row * 6, inside);
    stores += fmt::format(
        " if {0} < 33 {{ c[ramp(({0}) * 17 + lane.id %% 5 * 4, 1, 4) where {1}] ="
        " select(d[{2} where {1}], e[{2} where {1} && d[{2} where {1}]], {3}) }}",
        at, inside, columns, sum);
  }
  CheckText(
      {fmt::format("func f(a: u8[33,6], b: u8[6,17], c: u8[33,17], d: bool[17], e: u8[17]) grid 2 lanes 40 {{"
                   " alloc t: u8[16] local {{ {} alloc p: u8[120] shared {{ alloc q: u8[192] shared {{"
                   " for turn in 3 {{ if turn * 40 + lane.id < 96 {{ q[ramp(turn * 80 + lane.id * 2, 1, 2)] ="
                   " a[ramp(group.id * 192 + turn * 80 + lane.id * 2, 1, 2)"
                   " where broadcast(group.id * 32 + (turn * 40 + lane.id) // 3 < 33, 2)] }} barrier }}"
                   " if lane.id < 30 {{ p[ramp(lane.id * 4, 1, 4)] ="
                   " b[ramp(lane.id %% 5 * 4 + lane.id // 5 * 17, 1, 4) where {}] }} barrier"
                   " for i in 6 {{ {} }} }} }} {} }} }}",
                   zeros, inside, sums, stores)});
}

// In the interpreter copies arrive at the wait, in OpenCL C at once.
TEST_F(OpenClCode, CopiesAreComplete) {
  const auto pipeline = [](std::string_view dtype, int count) {
    return fmt::format(
        "func f(x: {0}[384], y: {0}[384]) grid 2 lanes 4 {{ alloc s: {0}[2,64] shared {{"
        " copy {1} s[lane.id * {1}] = x[lane.id * {1}] commit for k in 3 {{ wait 0 barrier"
        " if k + 1 < 3 {{ copy {1} s[(k + 1) %% 2 * 64 + lane.id * {1}] ="
        " x[(k + 1) * 64 + lane.id * {1} where lane.id < 3] }} commit"
        " for i in {1} {{ y[group.id * 192 + k * 64 + i * 4 + lane.id] ="
        " s[k %% 2 * 64 + {1} * 4 - 1 - i * 4 - lane.id] }} }} }} }}",
        dtype, count);
  };
  CheckText({pipeline("f32", 1), pipeline("f32", 2), pipeline("f32", 4), pipeline("f16", 8), pipeline("bf16", 2),
             pipeline("i8", 16), pipeline("u8", 4), pipeline("i64", 2), pipeline("bool", 8), pipeline("i64", 1)});
}

TEST_F(OpenClCode, PipelinedSchedules) {
  std::vector<ir::Func> funcs;
  const std::tuple<const char*, std::string, const char*> cases[] = {{tests::kEven, tests::kByFour, "pipeline ko"},
                                                                     {tests::kOdd, tests::kByOne, "pipeline ko"},
                                                                     {tests::kConv, tests::kConvTiles, "pipeline rco"}};
  for (const auto& [text, schedule, pipeline] : cases) {
    for (const int buffers : {1, 2, 3}) {
      const std::string steps = buffers == 1 ? schedule : fmt::format("{}{} {}\n", schedule, pipeline, buffers);
      const auto workload = ir::ParseWorkload(text);
      const auto read = schedule::ParseSchedule(steps);
      ASSERT_TRUE(workload.ok() && read.ok());
      const auto state = schedule::Replay(*workload, *read);
      ASSERT_TRUE(state.ok()) << state.status();
      auto module = execution::Lower(*state, target::TypicalTarget(target::Kind::kOpenCl), "kernel", {.verify = true});
      ASSERT_TRUE(module.ok()) << module.status();
      ASSERT_EQ(module->main.size(), 1);
      funcs.push_back(std::move(module->main[0]));
      funcs.back().name = fmt::format("kernel_{}", funcs.size());
    }
  }
  Check(funcs);
}

TEST_F(OpenClCode, VectorsMaskedStridedAndOverlapping) {
  std::vector<std::string> texts;
  for (const char* type : {"f32", "i8", "bool", "f16", "bf16", "i64", "f64"}) {
    for (const int n : {3, 4, 16}) {
      const auto with = [&](std::string text) {
        for (const auto& [what, by] : {std::pair<std::string, std::string>{"TYPE", type}, {"N", std::to_string(n)}}) {
          for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;) text.replace(at, what.size(), by);
        }
        return text;
      };
      texts.push_back(
          with("func f(x: TYPE[40], y: TYPE[40]) grid 1 lanes 1 {"
               " y[ramp(5, 1, N)] = x[ramp(3, 1, N)]"
               " y[ramp(25, 1, N) where ramp(0, 1, N) < broadcast(lane.id + 2, N)] ="
               "   x[ramp(39, 1, N) where ramp(38, 1, N) < broadcast(39, N)]"
               " y[ramp(0, 2, N) where broadcast(lane.id == 0, N)] = x[ramp(32, -2, N)] }"));
      texts.push_back(
          with("func f(x: TYPE[40], y: TYPE[40], m: bool[40], at: i64[40]) grid 1 lanes 1 {"
               " y[ramp(1, 1, N)] = y[ramp(0, 1, N)]"
               " y[ramp(21, 1, N) where m[ramp(0, 1, N)]] = x[at[ramp(16, 1, N)] %% broadcast(40, N)]"
               " y[broadcast(20, N)] = x[ramp(0, 1, N)]"
               " let v = x[ramp(7, 1, N) where broadcast(lane.id > 0, N)] { y[ramp(38, -1, N)] = v } }"));
    }
  }
  CheckText(texts);
}

TEST_F(OpenClCode, ArmsNotTakenAreNotLoaded) {
  // The index is far outside of the buffers: the interpreter would refuse the load, and the device would crash.
  CheckText(
      {"func f(x: f32[4], y: f32[8]) grid 1 lanes 8 {"
       " y[lane.id] = select(lane.id < 4, x[lane.id + select(lane.id < 4, 0, 1000000000000)], -1f32) }",
       "func f(x: f32[4], y: f32[8]) grid 1 lanes 1 { y[ramp(0, 1, 8)] = select(ramp(0, 1, 8) < broadcast(4, 8),"
       " x[ramp(0, 1, 8) * (ramp(0, 1, 8) // broadcast(4, 8) * broadcast(1000000000000, 8) + broadcast(1, 8))"
       " where ramp(0, 1, 8) < broadcast(4, 8)], broadcast(2f32, 8)) }",
       "func f(x: f32[4], y: f32[4]) grid 1 lanes 1 { y[ramp(0, 1, 4)] = select(broadcast(lane.id > 0, 4),"
       " x[ramp(1000000000000, 1, 4)], broadcast(2f32, 4)) }",
       "func f(x: f32[4], y: f32[8]) grid 1 lanes 8 {"
       " y[lane.id] = x[lane.id * 100000000000 where lane.id < 1] }"});
}

TEST_F(OpenClCode, IndicesOf64BitsAndOddNames) {
  CheckText(
      {"func f(x: i64[24], y: i64[6]) grid 1 lanes 6 { let big = x[lane.id] {"
       " y[lane.id] = (big + 3000000000 * lane.id) %% 1000003 + (big * 5 - 7) // 3 + (lane.id - 3) // 2 } }",
       "func f(y: i64[6]) grid 1 lanes 6 { for i in 2 { y[lane.id] = (lane.id * 2000000000 + i * 2000000000) // 7 } }",
       "func f(n: i64[4], y: i64[8]) grid 1 lanes 1 { for i in n[1] + 3 { for j in n[0] { y[0] = 1 } y[i] = i + n[1] } "
       "}",
       "func f(`conv/1:0`: f32[4], `float`: f32[4], `2`: f32[4], `2_`: f32[4], exp: f32[4], INFINITY: f32[4])"
       " grid 1 lanes 4 { let `op_add_i32` = `float`[lane.id] { let `t` = exp[lane.id] { for `int` in 1 {"
       " block `a \\\\` { `conv/1:0`[lane.id + `int`] = exp(`op_add_i32`) * 0f32 + `2`[lane.id] + `2_`[lane.id] + "
       "`t` +"
       " INFINITY[lane.id] + nan_f32 } } } } }",
       "func f(y: i32[4]) grid 1 lanes 4 { let x = i32(lane.id) { y[lane.id] = x } let x = i32(2) { y[lane.id] ="
       " y[lane.id] + x } }"});
}

// Turns a random func into a kernel of one lane: loops of all kinds become serial, and local buffers params with
// contents.
class ForOneLane {
 public:
  ir::Func operator()(ir::Func func, int number) {
    func.name = fmt::format("random_{}", number);
    func.body = passes::Flatten(Lower(func.body));
    func.grid = {1, 1};
    return func;
  }

 private:
  ir::Buffer Local(const ir::Buffer& buffer) const {
    const auto it = local_.find(buffer.get());
    return it == local_.end() ? buffer : it->second;
  }
  Expr Lower(const Expr& e) const {
    const Expr mapped = ir::MapChildren(e, [&](const Expr& child) { return Lower(child); });
    if (const ir::Load* load = mapped.As<ir::Load>()) {
      return ir::MakeLoad(Local(load->buffer), load->indices, load->mask);
    }
    const ir::Call* call = mapped.As<ir::Call>();
    if (call == nullptr) return mapped;
    // Functions whose error is the device's own are left out: this comparison is exact.
    if (call->function < ir::Intrinsic::kIsNan) return ir::MakeUnary(ir::UnaryOp::kAbs, call->args[0]);
    const Expr& arg = call->args[0];
    if (call->function != ir::Intrinsic::kReinterpret || !ir::IsFloat(arg.type().dtype)) return mapped;
    // Nor are the bits of a NaN.
    const Expr is_nan = ir::MakeCall({DType::kBool, arg.type().width}, ir::Intrinsic::kIsNan, {arg});
    return ir::MakeCall(call->type, call->function, {ir::MakeSelect(is_nan, ir::MakeZero(arg.type()), arg)});
  }
  ir::Stmt Lower(const ir::Stmt& s) {
    if (const ir::Alloc* alloc = s.As<ir::Alloc>()) {
      const ir::BufferNode& old = *alloc->buffer;
      const ir::Buffer buffer = ir::MakeBuffer(old.name, old.dtype, old.shape, ir::Scope::kLocal);
      local_[&old] = buffer;
      std::vector<ir::Stmt> stmts;
      for (int64_t i = 0; i < ir::NumElements(old); ++i) {
        stmts.push_back(ir::MakeStore(buffer, {i}, ir::MakeZero({old.dtype, 1})));
      }
      stmts.push_back(Lower(alloc->body));
      return ir::MakeAlloc(buffer, ir::MakeBlock(std::move(stmts)));
    }
    const ir::Stmt mapped = ir::MapChildren(
        s, [&](const ir::Stmt& child) { return Lower(child); }, [&](const Expr& e) { return Lower(e); });
    if (const ir::For* loop = mapped.As<ir::For>()) {
      return ir::MakeFor(loop->var, loop->extent, ir::LoopKind::kSerial, loop->body);
    }
    const ir::Store* store = mapped.As<ir::Store>();
    if (store == nullptr) return mapped;
    return ir::MakeStore(Local(store->buffer), store->indices, store->value, store->mask);
  }

  std::map<const ir::BufferNode*, ir::Buffer> local_;
};

TEST_F(OpenClCode, RandomFuncs) {
  std::vector<ir::Func> funcs;
  for (int seed = 0; seed < 60; ++seed) {
    funcs.push_back(ForOneLane()(ir::RandomIr(static_cast<uint64_t>(seed)).MakeFunc(), seed));
  }
  Check(funcs);
}

TEST(OpenClText, ReadsLikeTheFunc) {
  const auto func = ir::ParseFunc(
      "func scale(x: f32[256], y: f32[256]) grid 1 lanes 8 { alloc row: f32[8] shared { row[lane.id] = x[lane.id]"
      " barrier block `times/two` { for j in 4 { y[ramp(lane.id * 32 + j * 8, 1, 8)] ="
      " x[ramp(lane.id * 32 + j * 8, 1, 8)] * broadcast(row[7 - lane.id], 8) } } } }");
  ASSERT_TRUE(func.ok()) << func.status();
  const auto source = EmitOpenCl(std::span(&*func, 1));
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(*source, *EmitOpenCl(std::span(&*func, 1)));
  EXPECT_EQ(*source, R"(#pragma OPENCL FP_CONTRACT ON

__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void scale(__global const float* restrict x, __global float* restrict y) {
  __local float row[8];
  const int lane_id = (int)get_local_id(0);
  row[lane_id] = x[lane_id];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  // times_two
  for (int j = 0; j < 4; ++j) {
    vstore8(vload8(0, x + (lane_id * 32 + j * 8)) * (float8)(row[7 - lane_id]), 0, y + (lane_id * 32 + j * 8));
  }
}
)");
}

TEST(OpenClText, CopiesAreLoadsAndStores) {
  const auto func = ir::ParseFunc(
      "func f(x: f32[64], y: f32[64]) grid 1 lanes 8 { alloc s: f32[32] shared {"
      " copy 4 s[lane.id * 4] = x[lane.id * 4 where lane.id < 5] commit wait 0 barrier y[lane.id] = s[lane.id] } }");
  ASSERT_TRUE(func.ok()) << func.status();
  const auto source = EmitOpenCl(std::span(&*func, 1));
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(*source, R"(#pragma OPENCL FP_CONTRACT ON

__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void f(__global const float* restrict x, __global float* restrict y) {
  __local float s[32];
  const int lane_id = (int)get_local_id(0);
  vstore4((lane_id < 5) ? vload4(0, x + lane_id * 4) : (float4)(0), 0, s + lane_id * 4);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  y[lane_id] = s[lane_id];
}
)");
}

TEST(OpenClText, RefusesWhatOpenClCannotExpress) {
  const std::pair<const char*, const char*> cases[] = {
      {"func f(y: f32[4]) { y[0] = 1f32 }", "func 'f' has no grid"},
      {"func f(y: f32[2,2]) grid 1 lanes 1 { y[0, 1] = 1f32 }", "an access to 'y' with 2 indices"},
      {"func f(y: f32[4]) grid 1 lanes 1 { vectorized i in 4 { y[i] = 1f32 } }", "loop 'i' is still vectorized"},
      {"func f(x: f32[8], y: f32[4]) grid 1 lanes 1 { alloc s: f32[2,4] shared { copy 4 s[1, 0] = x[0] commit wait 0 } "
       "}",
       "an access to 's' with 2 indices"},
      {"func f(y: f32[4]) grid 1 lanes 4 { merge y[0] = sum lane.id:4 of 1f32 }", "reads the registers of other lanes"},
      {"func double(y: f32[4]) grid 1 lanes 1 { y[0] = 1f32 }", "reserves this name, so no kernel can have it"}};
  for (const auto& [text, message] : cases) {
    const auto func = ir::ParseFunc(text);
    ASSERT_TRUE(func.ok()) << func.status();
    EXPECT_THAT(std::string(EmitOpenCl(std::span(&*func, 1)).status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace hone::codegen
