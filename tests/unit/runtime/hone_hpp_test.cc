// SPDX-License-Identifier: Apache-2.0
// The C++ interface of the runtime, on the tiny package. hone_cpp_program.cc has it in C++17 without exceptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>

#include "base/temporary_folder.h"
#include "deploy/runtime/hone.hpp"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::tests {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class HppTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder(TemporaryFolder::Create().value());
    WriteTinyPackage(Path("tiny"), TinyContents(CompileTinyKernels()));
    package::PackageContents open = TinyContents(CompileTinyKernels());
    OpenRows(open.programs.front());
    WriteTinyPackage(Path("open"), open);
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string Path(const std::string& name) { return *folder_ / (name + ".hone"); }

  static inline TemporaryFolder* folder_ = nullptr;
};

std::vector<float> Values(Span<const float> span) { return {span.begin(), span.end()}; }

TEST_F(HppTest, RunsAPackage) {
  Session session(Path("tiny"), {.threads = 1});
  const std::vector<float> given = TinyInput();
  const Span<float> x = session.Input<float>("x");
  ASSERT_EQ(x.size(), given.size());
  std::copy(given.begin(), given.end(), x.begin());
  session.Run();
  EXPECT_EQ(Values(session.Output<float>("y")), TinyOutput());
  EXPECT_EQ(Values(session.Output<float>(1)), given);
  EXPECT_EQ(session.Output<float>(0).data(), session.Output<float>("y").data());
  EXPECT_THAT(session.Shape("y"), ElementsAreArray({kRows, kColumns}));
}

TEST_F(HppTest, DescribesPorts) {
  const Session session(Path("tiny"));
  const std::vector<Port> inputs = session.inputs(), outputs = session.outputs();
  ASSERT_THAT(inputs, SizeIs(1));
  ASSERT_THAT(outputs, SizeIs(3));
  EXPECT_EQ(inputs[0].name, "x");
  EXPECT_EQ(inputs[0].dtype.code, kDLFloat);
  EXPECT_EQ(inputs[0].bytes, kRows * kColumns * sizeof(float));
  EXPECT_THAT(inputs[0].shape, ElementsAreArray({kRows, kColumns}));
  EXPECT_EQ(outputs[2].name, "bias_out");
  EXPECT_EQ(session.target(), "cpu");
  EXPECT_EQ(session.passed_over(), "");
  EXPECT_FALSE(session.metadata().empty());
}

TEST_F(HppTest, CopiesAndBindsMemoryOfTheCaller) {
  Session session(Path("tiny"));
  const std::vector<float> given = TinyInput();
  session.Set<float>("x", given, {kRows, kColumns});
  session.Run();
  EXPECT_EQ(Values(session.Output<float>("y")), TinyOutput());
  alignas(64) std::array<float, kRows * kColumns> x = {}, y = {};
  std::copy(given.begin(), given.end(), x.begin());
  session.BindInput<float>("x", x, {kRows, kColumns});
  session.BindOutput<float>("y", y, {kRows, kColumns});
  session.Run();
  EXPECT_EQ(Values(y), TinyOutput());
  EXPECT_EQ(session.Input<float>("x").data(), x.data());
  EXPECT_EQ(session.Output<float>("y").data(), y.data());
}

TEST_F(HppTest, ResizesOpenDimensions) {
  Session session(Path("open"));
  session.Resize("x", {2, kColumns});
  EXPECT_EQ(session.Input<float>("x").size(), size_t{2 * kColumns});
  const std::vector<float> given = TinyInput();
  std::copy_n(given.begin(), 2 * kColumns, session.Input<float>("x").begin());
  session.Run();
  EXPECT_THAT(session.Shape("y"), ElementsAreArray({int64_t{2}, kColumns}));
  const std::vector<float> whole = TinyOutput();
  EXPECT_EQ(Values(session.Output<float>("y")), std::vector<float>(whole.begin(), whole.begin() + 2 * kColumns));
  EXPECT_THROW(session.Resize("x", {kRows + 1, kColumns}), Error);
}

TEST_F(HppTest, TellsTheTimeOfEachCall) {
  Session session(Path("tiny"));
  session.Set<float>(0, TinyInput(), {kRows, kColumns});
  const std::vector<CallTime> times = session.Profile();
  ASSERT_THAT(times, SizeIs(hone_call_count(session.get())));
  for (const CallTime& time : times) {
    EXPECT_FALSE(time.kernel.empty());
    EXPECT_EQ(time.target, "cpu");
    EXPECT_GE(time.seconds, 0);
  }
  session.SetThreads(1);
  EXPECT_EQ(session.threads(), 1);
}

TEST_F(HppTest, MovesItsModel) {
  static_assert(!std::is_copy_constructible_v<Session> && std::is_nothrow_move_constructible_v<Session>);
  Session first(Path("tiny")), second(Path("tiny"));
  HoneModel* const model = first.get();
  Session moved = std::move(first);
  EXPECT_EQ(moved.get(), model);
  second = std::move(moved);
  EXPECT_EQ(second.get(), model);
  second.Set<float>(0, TinyInput(), {kRows, kColumns});
  second.Run();
  EXPECT_EQ(Values(second.Output<float>(0)), TinyOutput());
}

TEST_F(HppTest, ErrorsHaveStatusAndText) {
  try {
    const Session session(Path("none"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), HONE_IO_ERROR);
    EXPECT_THAT(error.what(), HasSubstr("none.hone"));
  }
  Result<Session> session = Session::TryLoad(Path("tiny"));
  ASSERT_TRUE(session);
  EXPECT_EQ(session->TryRun().error().status, HONE_INVALID_ARGUMENT) << "x was never set";
  EXPECT_THAT(session->TryInput<float>("z").error().text, HasSubstr("no input 'z'; it has: x"));
  EXPECT_THAT(session->TryOutput<float>("z").error().text, HasSubstr("no output 'z'; it has: y, x_out, bias_out"));
  EXPECT_THAT(session->TryOutput<float>(7).error().status, HONE_INVALID_ARGUMENT);
  EXPECT_THAT(session->TryInput<int>("x").error().text, HasSubstr("code 2 and 32 bits, not code 0 and 32 bits"));
  EXPECT_EQ(session->TryInput<std::byte>("x")->size(), kRows * kColumns * sizeof(float));
  const std::vector<float> few(3);
  EXPECT_THAT(session->TrySet<float>("x", few, {kRows, kColumns}).error().text,
              HasSubstr("the shape has 32 elements, the memory 3"));
  EXPECT_FALSE(session->TrySet<float>("x", few, {3}));
  EXPECT_FALSE(Session::TryLoad(Path("none")));
  EXPECT_THROW(Session::TryLoad(Path("none")).value(), Error);
}

TEST_F(HppTest, ServesAProgramWithoutExceptions) {
  const CommandResult result = RunCommand(std::string(HONE_CPP_PROGRAM) + " " + Path("tiny"));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output, "y[0] = 4\n");
  const CommandResult none = RunCommand(std::string(HONE_CPP_PROGRAM) + " " + Path("none"));
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.output, HasSubstr("none.hone"));
}

TEST(HppSpanTest, ConvertsToAndFromOtherContainers) {
  std::vector<float> values = {1, 2, 3};
  const Span<float> span = values;
  const std::span<float> standard = span;
  EXPECT_EQ(standard.data(), values.data());
  EXPECT_EQ(Span<const float>(standard).size(), 3U);
  EXPECT_EQ(Span<const float>(span)[1], 2);
  static_assert(!std::is_convertible_v<const std::vector<float>&, Span<float>>);
  static_assert(!std::is_convertible_v<std::vector<double>&, Span<const float>>);
}

TEST(HppElementTest, TypesAreThoseOfDlpack) {
  const auto text = [](DLDataType type) { return std::to_string(type.code) + "/" + std::to_string(type.bits); };
  EXPECT_EQ(text(ElementType<float>()), "2/32");
  EXPECT_EQ(text(ElementType<double>()), "2/64");
  EXPECT_EQ(text(ElementType<Float16>()), "2/16");
  EXPECT_EQ(text(ElementType<BFloat16>()), "4/16");
  EXPECT_EQ(text(ElementType<int64_t>()), "0/64");
  EXPECT_EQ(text(ElementType<uint8_t>()), "1/8");
  EXPECT_EQ(text(ElementType<bool>()), "6/8");
}

}  // namespace
}  // namespace hone::tests
