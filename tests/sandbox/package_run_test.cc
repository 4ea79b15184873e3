// SPDX-License-Identifier: Apache-2.0
// Packages run through the agent's own launcher, inside the sandbox: their outputs are those of `hone run`, several run
// in turns, and one that crashes, hangs, is damaged or does what it must not becomes the outcome of the run.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/memory_file.h"
#include "base/temporary_folder.h"
#include "deploy/package/memory_plan.h"
#include "deploy/run/loaded_package.h"
#include "deploy/run/npz.h"
#include "device_agent/agent/launcher_process.h"
#include "device_agent/devices/cpu/cpu_device.h"
#include "device_agent/launcher/package_runner.h"
#include "tests/unit/device_agent/hand_made_kernels.h"
#include "tests/unit/drivers/opencl_device.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;
using tests::CompileTinyKernels;
using tests::ReadWholeFile;

// The flags with which the tiny package's kernel evaluates `expression` for each element.
std::string Scaled(const std::string& expression, const std::string& header = "") {
  return (header.empty() ? "" : "-include " + header + " ") + "-DSCALE='" + expression + "'";
}

const std::string kCrashes = Scaled("(*(volatile float*)8)");
const std::string kHangs = Scaled("({ for (volatile int i = 1; i != 0;) i = 2; 1.0f; })");
const std::string kOpensAFile = Scaled("(open(\"/proc/self/maps\", O_RDONLY) < 0 ? 1.0f : 2.0f)", "fcntl.h");
const std::string kExits = Scaled("({ _exit(3); 1.0f; })", "unistd.h");
const std::string kSleepsALittle =
    Scaled("({ for (volatile int i = 0; i < 20000;) i = i + 1; 2.0f; })");  // less than a millisecond for each

std::string Contents(const MemoryFile& file) { return std::string(MapFile(file.descriptor()).value().view()); }

class PackageRunTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ / name; }

  // Writes the tiny package, compiled with the flags.
  void Write(const std::string& name, const std::string& flags = "") {
    tests::WriteTinyPackage(Path(name), tests::TinyContents(CompileTinyKernels(flags)));
  }
  void WriteInputs(const std::string& name, const std::string& array = "x") {
    const std::vector<float> x = tests::TinyInput();
    const std::vector<int64_t> shape = {tests::kRows, tests::kColumns};
    const run::ArrayView arrays[] = {{array,
                                      package::DType::kFloat32,
                                      shape,
                                      {reinterpret_cast<const uint8_t*>(x.data()), x.size() * sizeof(float)}}};
    std::ofstream file(Path(name), std::ios::binary);
    const run::NpzWriter archive(arrays);
    for (const auto& piece : archive.pieces()) {
      file.write(reinterpret_cast<const char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
    }
  }

  static v1::Batch Batch(const std::vector<std::string>& packages, const std::string& inputs = "") {
    v1::Batch batch;
    batch.add_candidates()->set_id("run");
    for (const std::string& name : packages) batch.mutable_run()->add_packages()->set_name(name);
    if (!inputs.empty()) batch.mutable_run()->mutable_inputs()->set_name(inputs);
    return batch;
  }
  std::vector<MemoryFile> Open(const v1::Batch& batch) const {
    std::vector<MemoryFile> files;
    for (const v1::FileName& package : batch.run().packages()) {
      files.emplace_back(open(Path(package.name()).c_str(), O_RDONLY | O_CLOEXEC));
    }
    if (batch.run().has_inputs()) {
      files.emplace_back(open(Path(batch.run().inputs().name()).c_str(), O_RDONLY | O_CLOEXEC));
    }
    return files;
  }
  Launcher::RunResult Run(const v1::Batch& batch, const std::stop_token& stop = {}) {
    const std::vector<MemoryFile> files = Open(batch);
    std::vector<int> descriptors;
    for (const MemoryFile& file : files) descriptors.push_back(file.descriptor());
    return launcher_.RunWithFiles(batch, descriptors, stop);
  }
  v1::Failure FailureOf(const v1::Batch& batch) {
    const v1::BatchResult result = Run(batch).result;
    EXPECT_EQ(result.error(), "");
    EXPECT_FALSE(result.has_run());
    EXPECT_EQ(result.outcomes_size(), 1) << result.DebugString();
    if (result.outcomes_size() != 1) return {};
    EXPECT_EQ(result.outcomes(0).candidate_id(), "run");
    return result.outcomes(0).outcome().failure();
  }
  // What the command writes for a package on this machine.
  std::string OutputsOfHoneRun(const std::string& package, const std::string& inputs) const {
    const tests::CommandResult ran =
        tests::RunCommand(fmt::format("{} run {} --input {} --output {}", HONE_PROGRAM, Path(package), Path(inputs),
                                      Path("outputs-of-hone-run.npz")));
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
    return ReadWholeFile(Path("outputs-of-hone-run.npz"));
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  Launcher launcher_{{.device = "cpu", .folder = folder_.path(), .program = HONE_AGENT_BINARY}};
};

TEST_F(PackageRunTest, OutputsHaveTheBytesThatHoneRunWrites) {
  Write("tiny.hone");
  WriteInputs("x.npz");
  v1::Batch batch = Batch({"tiny.hone"}, "x.npz");
  batch.mutable_run()->set_keep_outputs(true);
  const Launcher::RunResult ran = Run(batch);
  ASSERT_TRUE(ran.result.has_run()) << ran.result.DebugString();
  ASSERT_EQ(ran.outputs.size(), 1u);
  EXPECT_EQ(Contents(ran.outputs[0]), OutputsOfHoneRun("tiny.hone", "x.npz"));
  EXPECT_LT(write(ran.outputs[0].descriptor(), "x", 1), 0) << "the outputs can be changed";
  ASSERT_EQ(ran.result.run().packages_size(), 1);
  const v1::PackageReport& report = ran.result.run().packages(0);
  EXPECT_EQ(report.target(), "cpu");
  EXPECT_GT(report.threads(), 0);
  EXPECT_GT(report.load_seconds(), 0);
  EXPECT_GT(report.first_run_seconds(), 0);
  EXPECT_EQ(report.runs(), 1);
  ASSERT_EQ(report.seconds_size(), 1);
  EXPECT_EQ(report.seconds(0), report.first_run_seconds());
  EXPECT_GT(report.peak_memory_bytes(), 1 << 20);
  EXPECT_LT(report.peak_memory_bytes(), 1 << 30);
  EXPECT_EQ(report.kernels_size(), 0);
  EXPECT_GT(ran.result.visit_seconds(), report.load_seconds());
}

TEST_F(PackageRunTest, WithoutInputsTheValuesAreThoseOfHoneBench) {
  Write("tiny.hone");
  v1::Batch batch = Batch({"tiny.hone"});
  batch.mutable_run()->set_keep_outputs(true);
  batch.mutable_run()->set_threads(1);
  const Launcher::RunResult ran = Run(batch);
  ASSERT_EQ(ran.outputs.size(), 1u) << ran.result.DebugString();
  run::LoadedPackage package = run::LoadedPackage::Load(Path("tiny.hone"), {}).value();
  ASSERT_TRUE(package.FillInputs(run::kRandomInputsSeed).ok());
  ASSERT_TRUE(package.Run().ok());
  const std::vector<run::ArrayView> outputs = package.Outputs().value();
  const run::NpzWriter archive(outputs);
  std::string expected;
  for (const auto& piece : archive.pieces()) expected.append(piece.begin(), piece.end());
  EXPECT_EQ(Contents(ran.outputs[0]), expected);
  EXPECT_EQ(ran.result.run().packages(0).threads(), 1);
}

TEST_F(PackageRunTest, PackagesRunInTurns) {
  Write("a.hone", Scaled("2.0f"));
  Write("b.hone", kSleepsALittle);
  v1::Batch batch = Batch({"a.hone", "b.hone"});
  batch.mutable_run()->set_seconds(0.2);
  batch.mutable_run()->set_profile(true);
  batch.mutable_run()->set_keep_outputs(true);
  const Launcher::RunResult ran = Run(batch);
  ASSERT_EQ(ran.result.run().packages_size(), 2) << ran.result.DebugString();
  EXPECT_EQ(ran.outputs.size(), 2u);
  const v1::PackageReport &a = ran.result.run().packages(0), &b = ran.result.run().packages(1);
  EXPECT_GE(a.runs(), 3);
  EXPECT_EQ(a.runs(), b.runs());
  EXPECT_EQ(a.seconds_size(), a.runs());
  EXPECT_EQ(a.seconds_size(), b.seconds_size());
  double together = 0;
  for (const auto* report : {&a, &b}) {
    for (const double seconds : report->seconds()) together += seconds;
    ASSERT_EQ(report->kernels_size(), 2);
    EXPECT_EQ(report->kernels(0).symbol(), "add_bias");
    EXPECT_EQ(report->kernels(1).symbol(), "scale");
    EXPECT_EQ(report->kernels(0).target(), "cpu");
    EXPECT_EQ(report->minutes_size(), 0) << "two minutes are needed";
  }
  EXPECT_GT(together, 0.2);
  EXPECT_LT(together, 1);
  EXPECT_GT(b.kernels(1).median_seconds(), 10 * a.kernels(1).median_seconds());
}

// A program that no run has used is loaded at its first use, which is too late in the sandbox.
TEST_F(PackageRunTest, TheProgramForTheShapesIsLoadedBeforeTheFirstRun) {
  package::PackageContents contents = tests::TinyContents("");
  contents.programs.clear();
  contents.metadata.programs.clear();
  package::PackageProgram open = tests::TinyProgram(CompileTinyKernels());
  tests::OpenRows(open);
  tests::AddProgram(contents, open, "cpu");
  tests::AddProgram(contents, tests::TinyProgram(CompileTinyKernels()), "cpu");
  tests::WriteTinyPackage(Path("two.hone"), contents);
  WriteInputs("x.npz");
  v1::Batch batch = Batch({"two.hone"}, "x.npz");
  batch.mutable_run()->set_keep_outputs(true);
  const Launcher::RunResult ran = Run(batch);
  ASSERT_EQ(ran.outputs.size(), 1u) << ran.result.DebugString();
  EXPECT_EQ(Contents(ran.outputs[0]), OutputsOfHoneRun("two.hone", "x.npz"));
  v1::Batch smaller = Batch({"two.hone"});
  smaller.mutable_run()->add_shapes("x=2,8");
  EXPECT_TRUE(Run(smaller).result.has_run());
}

// A package for OpenCL and for this CPU.
package::PackageContents OpenClAndCpu() {
  package::PackageContents contents = tests::TinyContents("");
  contents.programs.clear();
  contents.metadata.programs.clear();
  tests::AddProgram(contents, tests::TinyOpenClProgram(), "opencl");
  tests::AddProgram(contents, tests::TinyProgram(CompileTinyKernels()), "cpu");
  return contents;
}

TEST_F(PackageRunTest, ADeviceRunsNoProgramsForOthers) {
  tests::WriteTinyPackage(Path("both.hone"), OpenClAndCpu());
  const v1::BatchResult result = Run(Batch({"both.hone"})).result;
  ASSERT_TRUE(result.has_run()) << result.DebugString();
  const v1::PackageReport& report = result.run().packages(0);
  EXPECT_EQ(report.target(), "cpu");
  ASSERT_EQ(report.passed_over_size(), 1);
  EXPECT_THAT(report.passed_over(0), HasSubstr("only the device 'cpu' may be used"));
}

TEST_F(PackageRunTest, SensorsAreReadBeforeAndAfter) {
  Write("tiny.hone");
  double reading = 40;
  Launcher launcher({.device = "cpu",
                     .folder = folder_.path(),
                     .program = HONE_AGENT_BINARY,
                     .sensors =
                         [&] {
                           reading += 1;
                           return Sensors{
                               .temperature_c = reading, .clock_mhz = 1000 + reading, .slowed_down = reading > 41};
                         },
                     .environment =
                         [] {
                           v1::RunEnvironment environment;
                           environment.set_governor("ondemand");
                           return environment;
                         }});
  const v1::Batch batch = Batch({"tiny.hone"});
  const std::vector<MemoryFile> files = Open(batch);
  const v1::RunReport report = launcher.RunWithFiles(batch, {files[0].descriptor()}, {}).result.run();
  EXPECT_EQ(report.temperature_before_c(), 41);
  EXPECT_EQ(report.temperature_after_c(), 42);
  EXPECT_EQ(report.clock_before_mhz(), 1041);
  EXPECT_EQ(report.clock_after_mhz(), 1042);
  EXPECT_TRUE(report.throttled()) << "after the run";
  EXPECT_EQ(report.environment().governor(), "ondemand");
  EXPECT_FALSE(Run(batch).result.run().has_temperature_before_c()) << "there are none";
  EXPECT_FALSE(Run(batch).result.run().throttled());
}

TEST_F(PackageRunTest, TooLittleMemoryIsNotThePackagesFault) {
  package::PackageContents greedy = tests::TinyContents(CompileTinyKernels());
  greedy.programs[0].kernels[1].workspace_bytes = int64_t{8} << 30;
  ASSERT_TRUE(package::PlanArena(greedy.programs[0]).ok());
  tests::WriteTinyPackage(Path("greedy.hone"), greedy);
  const CpuDevice device;
  const v1::Batch batch = Batch({"greedy.hone"});
  const PackageRunner runner(device, {.memory_limit = int64_t{4} << 30});
  const v1::BatchResult result = runner.Run(batch, Open(batch), -1).result;
  ASSERT_EQ(result.outcomes_size(), 1) << result.DebugString();
  EXPECT_EQ(result.outcomes(0).outcome().failure().kind(), v1::FAILURE_KIND_LOST_DEVICE);
  EXPECT_THAT(result.outcomes(0).outcome().failure().text(), HasSubstr("package 'greedy.hone': cannot allocate"));
}

TEST_F(PackageRunTest, AFailureNamesThePackageAndItsKind) {
  Write("good.hone");
  Write("crash.hone", kCrashes);
  Write("open.hone", kOpensAFile);
  Write("exit.hone", kExits);
  std::string damaged = ReadWholeFile(Path("good.hone"));
  damaged[damaged.size() / 2] ^= 1;
  tests::WriteWholeFile(Path("damaged.hone"), damaged);
  tests::WriteWholeFile(Path("text.hone"), "no package");
  package::PackageContents needy = tests::TinyContents(CompileTinyKernels());
  needy.programs[0].units[0].cpu_features = {"feature_of_no_cpu"};
  tests::WriteTinyPackage(Path("needy.hone"), needy);
  const struct {
    std::string package;
    v1::FailureKind kind;
    std::string text;
  } cases[] = {
      {"crash.hone", v1::FAILURE_KIND_CRASHED, "package 'crash.hone': crashed with SIGSEGV"},
      {"open.hone", v1::FAILURE_KIND_FORBIDDEN_CALL, "package 'open.hone': made the system call openat"},
      {"exit.hone", v1::FAILURE_KIND_CRASHED, "package 'exit.hone': the process ended with status 3"},
      {"damaged.hone", v1::FAILURE_KIND_COMPILE_ERROR, "damaged"},
      {"text.hone", v1::FAILURE_KIND_COMPILE_ERROR,
       "package 'text.hone': bad package: the file does not start as a .hone"},
      {"needy.hone", v1::FAILURE_KIND_COMPILE_ERROR, "feature_of_no_cpu"},
  };
  for (const auto& [package, kind, text] : cases) {
    const v1::Failure failure = FailureOf(Batch({"good.hone", package}));
    EXPECT_EQ(failure.kind(), kind) << package << ": " << failure.text();
    EXPECT_THAT(failure.text(), HasSubstr(text)) << package;
    EXPECT_THAT(failure.text(), HasSubstr(package));
  }
  EXPECT_TRUE(Run(Batch({"good.hone"})).result.has_run()) << "the launcher goes on";
  EXPECT_EQ(launcher_.Run(HandMadeBatch({"good"}), {}).error(), "") << "with kernels, too";
}

TEST_F(PackageRunTest, InputsThatDoNotFitAreAFailure) {
  Write("tiny.hone");
  WriteInputs("wrong.npz", "wrong");
  const v1::Failure failure = FailureOf(Batch({"tiny.hone"}, "wrong.npz"));
  EXPECT_EQ(failure.kind(), v1::FAILURE_KIND_COMPILE_ERROR) << failure.text();
  EXPECT_THAT(failure.text(), HasSubstr("missing 'x'; unknown 'wrong'"));
  tests::WriteWholeFile(Path("text.npz"), "no archive");
  EXPECT_THAT(FailureOf(Batch({"tiny.hone"}, "text.npz")).text(), HasSubstr("Not a zip archive"));
  v1::Batch shaped = Batch({"tiny.hone"});
  shaped.mutable_run()->add_shapes("x=9,9");
  EXPECT_THAT(FailureOf(shaped).text(), HasSubstr("[9, 9]"));
}

TEST_F(PackageRunTest, ARunThatContradictsItselfIsRefused) {
  Write("tiny.hone");
  EXPECT_THAT(launcher_.RunWithFiles(Batch({"tiny.hone"}), {}, {}).result.error(), HasSubstr("needs 1 files and 0"));
  v1::Batch batch = Batch({"tiny.hone"});
  batch.mutable_run()->set_seconds(-1);
  EXPECT_THAT(Run(batch).result.error(), HasSubstr("cannot measure for -1 s"));
  EXPECT_THAT(Run(Batch(std::vector<std::string>(9, "tiny.hone"))).result.error(), HasSubstr("1 to 8 packages"));
  EXPECT_THAT(Run(Batch(std::vector<std::string>(17, "tiny.hone"))).result.error(),
              HasSubstr("16 files at most, not 17"));
  const MemoryFile writable(open(Path("tiny.hone").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_THAT(launcher_.RunWithFiles(Batch({"tiny.hone"}), {writable.descriptor()}, {}).result.error(),
              HasSubstr("open for writing"));
  EXPECT_THAT(launcher_.RunWithFiles(Batch({"tiny.hone"}), {-1}, {}).result.error(), HasSubstr("not open"));
}

TEST_F(PackageRunTest, ARunThatDoesNotEndIsATimeout) {
  Write("hang.hone", kHangs);
  const CpuDevice device;
  const v1::Batch batch = Batch({"hang.hone"});
  const PackageRunner runner(device, {.run_seconds = 0.5});
  v1::BatchResult result = runner.Run(batch, Open(batch), -1).result;
  ASSERT_EQ(result.outcomes_size(), 1) << result.DebugString();
  EXPECT_EQ(result.outcomes(0).outcome().failure().kind(), v1::FAILURE_KIND_RUN_TIMEOUT);
  EXPECT_THAT(result.outcomes(0).outcome().failure().text(),
              HasSubstr("package 'hang.hone': one run took longer than 0.5 s"));
  v1::Batch limited = batch;
  limited.mutable_policy()->set_visit_seconds(0.3);
  EXPECT_THAT(FailureOf(limited).text(), HasSubstr("the visit, which may take 0.3 s, ended before the run"));
}

TEST_F(PackageRunTest, AStopEndsTheRun) {
  Write("tiny.hone");
  Write("hang.hone", kHangs);
  for (const char* const package : {"tiny.hone", "hang.hone"}) {
    v1::Batch batch = Batch({package});
    batch.mutable_run()->set_seconds(1000);
    std::stop_source stop;
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      stop.request_stop();
    });
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(Run(batch, stop.get_token()).result.error(), "cancelled");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
  }
  EXPECT_TRUE(Run(Batch({"tiny.hone"})).result.has_run());
}

size_t OpenFiles(const std::string& process) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/" + process + "/fd")) ++count;
  return count;
}

std::vector<std::string> ProcessesNaming(const std::string& word) {
  std::vector<std::string> processes;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(process.path() / "cmdline");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.find(word) != std::string::npos) processes.push_back(process.path().filename().string());
  }
  return processes;
}

TEST_F(PackageRunTest, NothingIsLeftBehind) {
  Write("tiny.hone");
  Write("crash.hone", kCrashes);
  WriteInputs("x.npz");
  const std::string word = "--launcher-folder=" + folder_.path().string();
  v1::Batch good = Batch({"tiny.hone"}, "x.npz"), bad = Batch({"tiny.hone", "crash.hone"}, "x.npz");
  for (v1::Batch* batch : {&good, &bad}) batch->mutable_run()->set_keep_outputs(true);
  EXPECT_TRUE(Run(good).result.has_run());
  const std::vector<std::string> processes = ProcessesNaming(word);
  std::vector<size_t> open;
  for (const std::string& process : processes) open.push_back(OpenFiles(process));
  const size_t own = OpenFiles("self");
  constexpr int kRounds = 10;
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_EQ(Run(good).outputs.size(), 1u);
    EXPECT_EQ(Run(bad).outputs.size(), 0u);
  }
  EXPECT_EQ(OpenFiles("self"), own);
  EXPECT_EQ(ProcessesNaming(word), processes);
  // A launcher that is starting a child, when it is counted, has a few files more or fewer. A file left open in each
  // round makes kRounds more.
  for (size_t i = 0; i < processes.size(); ++i) EXPECT_LT(OpenFiles(processes[i]), open[i] + kRounds / 2);
}

// The last test, because OpenCL starts threads in this process, and others fork it.
TEST_F(PackageRunTest, AnOpenClDeviceRunsPackages) {
  std::string reason;
  if (tests::OpenClDevice(&reason) == nullptr) GTEST_SKIP() << reason;
  tests::WriteTinyPackage(Path("both.hone"), OpenClAndCpu());
  WriteInputs("x.npz");
  const TemporaryFolder parent = TemporaryFolder::Create().value();
  Launcher launcher({.device = "opencl", .folder = MakeLauncherFolder(parent).value(), .program = HONE_AGENT_BINARY});
  v1::Batch batch = Batch({"both.hone", "both.hone"}, "x.npz");
  batch.mutable_run()->set_seconds(0.1);
  batch.mutable_run()->set_keep_outputs(true);
  batch.mutable_run()->set_profile(true);
  const std::vector<MemoryFile> files = Open(batch);
  const std::vector<int> descriptors = {files[0].descriptor(), files[1].descriptor(), files[2].descriptor()};
  for (int i = 0; i < 2; ++i) {  // the second run does not find what the first left
    const Launcher::RunResult ran = launcher.RunWithFiles(batch, descriptors, {});
    ASSERT_EQ(ran.outputs.size(), 2u) << ran.result.DebugString();
    EXPECT_EQ(ran.result.run().packages(0).target(), "opencl") << ran.result.DebugString();
    EXPECT_EQ(ran.result.run().packages(0).kernels_size(), 2);
    EXPECT_GE(ran.result.run().packages(1).runs(), 3);
    EXPECT_EQ(Contents(ran.outputs[0]), OutputsOfHoneRun("both.hone", "x.npz"));
  }
}

}  // namespace
}  // namespace hone::agent
