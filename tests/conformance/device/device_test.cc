// SPDX-License-Identifier: Apache-2.0
// The requirements on every device: the promises of device_agent/devices/device.h, and that a visit tells good kernels
// from bad ones on it.
#include "device_agent/devices/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "base/temporary_folder.h"
#include "device_agent/launcher/confine_launcher.h"
#include "device_agent/launcher/visit_runner.h"
#include "device_agent/sandbox/sandbox.h"
#include "device_agent/visit/elements.h"
#include "device_agent/visit/seconds_now.h"
#include "tests/conformance/device/fake_device.h"
#include "tests/conformance/device/subjects.h"
#include "tests/unit/device_agent/hand_made_kernels.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

constexpr int kSkipped = 77;  // exit status of a child
constexpr int kY = 2;         // index of the output among the buffers

// Runs `body` in a child process, because drivers do not survive a fork, and reports its failures as this process's.
// Returns the exit status.
int InChild(const std::function<void()>& body) {
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : testing::Test::IsSkipped() ? kSkipped : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 1) << "see above";
  return WEXITSTATUS(status);
}

class DeviceTest : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    const int status = InChild([&] {
      const auto fingerprint = device_->Fingerprint();
      if (!absl::IsUnavailable(fingerprint.status())) {
        ASSERT_TRUE(fingerprint.ok()) << fingerprint.status();
        return;
      }
      printf("[SKIP] %s\n", std::string(fingerprint.status().message()).c_str());
      GTEST_SKIP();
    });
    if (status == kSkipped) GTEST_SKIP() << "this machine has no such device";
  }

  VisitKernel Kernel(const std::string& name) const {
    return {HandMadeInterface(name, GetParam().groups, GetParam().lanes)};
  }
  VisitBatch Batch(const std::vector<std::string>& candidates = {}) const {
    VisitBatch batch;
    batch.workload_digest = "conformance";
    batch.artifact = artifact_;
    batch.buffers = {{"x", BufferRole::kInput, "f32", 1000, 4000, -1, 1},
                     {"w", BufferRole::kConstant, "f32", 1000, 4000, -1, 1},
                     {"y", BufferRole::kOutput, "f32", 1000, 4000}};
    batch.reference = Kernel("reference");
    for (const std::string& name : candidates) batch.candidates.push_back({name, Kernel(name)});
    batch.tolerance = {1e-5, 1e-6};
    batch.policy.timeout_seconds = 2;
    batch.policy.min_seconds_first = 0.0005;
    batch.policy.final_seconds = 0.001;
    return batch;
  }

  // Opens a session in a child and passes it on, with the output that the session's inputs must give.
  void WithSession(const VisitBatch& batch,
                   const std::function<void(Session&, const std::vector<float>& expected)>& use) {
    InChild([&] {
      const DataLayout layout = ComputeDataLayout(batch);
      std::vector<float> data(static_cast<size_t>(layout.input_bytes) / sizeof(float)), expected(1000);
      char* const bytes = reinterpret_cast<char*>(data.data());
      for (int i = 0; i < kY; ++i)
        Fill(batch.buffers[static_cast<size_t>(i)], i, 1, bytes + layout.offsets[static_cast<size_t>(i)]);
      const float* const x = data.data();
      const float* const w = data.data() + layout.offsets[1] / static_cast<int64_t>(sizeof(float));
      for (size_t i = 0; i < 1000; ++i) expected[i] = 2 * x[i] + w[i];
      FILE* const artifact = tmpfile();
      ASSERT_EQ(fwrite(artifact_.data(), 1, artifact_.size(), artifact), artifact_.size());
      fflush(artifact);
      RegionTable& regions = *new RegionTable;
      auto started = device_->Start(batch.threads);
      ASSERT_TRUE(started.ok()) << started.status();
      auto session = (*started)->Open({&batch, fileno(artifact), bytes, 0, SessionPurpose::kTiming, &regions});
      ASSERT_TRUE(session.ok()) << session.status();
      use(**session, expected);
    });
  }

  // Loads, prepares and calls the kernel once, and checks the output.
  static void ExpectComputes(Session& session, const VisitKernel& kernel, const std::vector<float>& expected) {
    const auto loaded = session.Load(kernel);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_EQ((*loaded)->Prepare(), absl::OkStatus());
    ASSERT_EQ(session.ClearOutputs(), absl::OkStatus());
    ASSERT_EQ((*loaded)->CallAt(0), absl::OkStatus());
    ExpectOutput(session, expected);
  }
  static void ExpectOutput(Session& session, const std::vector<float>& expected) {
    std::vector<float> y(expected.size());
    ASSERT_EQ(session.CopyOutput(kY, {reinterpret_cast<char*>(y.data()), 4 * y.size()}), absl::OkStatus());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-5) << i;
  }

  std::map<std::string, VisitOutcome> Visit(const std::vector<std::string>& names) {
    const VisitBatch batch = Batch(names);
    const VisitResult result = visit_runner_.Run(batch, -1);
    EXPECT_EQ(result.error, "");
    std::map<std::string, VisitOutcome> outcomes;
    for (size_t i = 0; i < result.outcomes.size(); ++i) outcomes[names[i]] = result.outcomes[i];
    return outcomes;
  }
  // Runs a bad kernel between two good ones, which must not be affected, and returns its failure.
  VisitFailure FailureFromStatus(const std::string& name) {
    auto outcomes = Visit({"good", name, "two_launches"});
    for (const char* good : {"good", "two_launches"}) {
      const auto* failure = std::get_if<VisitFailure>(&outcomes[good]);
      EXPECT_EQ(failure, nullptr) << good << " suffers from " << name << ": " << failure->text;
    }
    const auto* failure = std::get_if<VisitFailure>(&outcomes[name]);
    EXPECT_NE(failure, nullptr) << name << " was not found out";
    return failure != nullptr ? *failure : VisitFailure();
  }

  const std::unique_ptr<Device> device_ = GetParam().make();
  const std::string artifact_ = GetParam().artifact();
  // An emulated processor supports no system call filter. tests/sandbox covers that case.
  VisitRunner visit_runner_{*device_, {.filter = DetectCallFilter(device_->sandbox())}};
};

TEST_P(DeviceTest, SaysWhatItIs) {
  InChild([&] {
    const auto once = device_->Fingerprint(), again = device_->Fingerprint();
    ASSERT_TRUE(once.ok() && again.ok());
    EXPECT_FALSE(device_->id().empty());
    EXPECT_FALSE(once->architecture.empty());
    EXPECT_EQ(once->text, again->text);
    EXPECT_EQ(once->text.find('\n'), std::string::npos);
    EXPECT_EQ(once->digest, Sha256Hex(once->text));
  });
}

TEST_P(DeviceTest, PassesItsSelfTest) {
  InChild([&] {
    const SelfTestResult test = device_->SelfTest(1);
    EXPECT_TRUE(test.passed) << test.reason;
    EXPECT_GT(test.reference_seconds, 0);
  });
}

TEST(CudaDevice, MachineCodeIsBuilt) {
  const std::unique_ptr<Device> device = [] {
    for (const Subject& subject : Subjects()) {
      if (subject.name == "Cuda") return subject.make();
    }
    return std::unique_ptr<Device>();
  }();
  ASSERT_NE(device, nullptr);
  std::string artifact = "text";
  artifact += '\0';
  artifact += "machine codetext";
  VisitBatch batch;
  batch.artifact = artifact;
  batch.candidates = {{"a", {{}, 0, 17}}};
  EXPECT_TRUE(device->IsBuilt(batch));
  batch.candidates = {{"a", {{}, 0, 17}}, {"b", {{}, 17, 4}}};
  EXPECT_FALSE(device->IsBuilt(batch)) << "one is text alone";
}

TEST(CudaDevice, TellsItsTemperatureClockPowerAndSlowing) {
  if (getenv("HONE_REAL_CUDA") != nullptr) GTEST_SKIP() << "the figures are those of the fake library";
  for (const Subject& subject : Subjects()) {
    if (subject.name != "Cuda") continue;
    const std::unique_ptr<Device> device = subject.make();
    InChild([&] {
      ASSERT_TRUE(device->Fingerprint().ok());
      const Sensors sensors = device->ReadSensors();
      EXPECT_EQ(sensors.temperature_c, 61);
      EXPECT_EQ(sensors.clock_mhz, 1755);
      EXPECT_EQ(sensors.watts, 287.5);
      EXPECT_FALSE(sensors.slowed_down);
      EXPECT_FALSE(sensors.seems_slowed_down);
      setenv("HONE_FAKE_THROTTLE", "0x20", 1);
      EXPECT_TRUE(device->ReadSensors().slowed_down) << "because of heat";
      setenv("HONE_FAKE_THROTTLE", "0x08", 1);
      EXPECT_FALSE(device->ReadSensors().slowed_down);
      EXPECT_TRUE(device->ReadSensors().seems_slowed_down) << "the hardware gives no reason";
      unsetenv("HONE_FAKE_THROTTLE");
      EXPECT_EQ(device->SelfTest(1).temperature_c, 61);
    });
  }
}

TEST_P(DeviceTest, OutputsAreClearedToBytesThatNoKernelWrites) {
  WithSession(Batch(), [](Session& session, const std::vector<float>&) {
    ASSERT_EQ(session.ClearOutputs(), absl::OkStatus());
    std::string output(4000, '0');
    ASSERT_EQ(session.CopyOutput(kY, output), absl::OkStatus());
    EXPECT_EQ(output, std::string(4000, '\xff'));
  });
}

TEST_P(DeviceTest, KernelsSeeTheirBuffersAligned) {
  const VisitKernel kernel = Kernel("aligned");
  WithSession(Batch(),
              [&](Session& session, const std::vector<float>& expected) { ExpectComputes(session, kernel, expected); });
}

TEST_P(DeviceTest, EachPointHasItsOwnSizes) {
  VisitBatch batch = Batch();
  batch.points = {{1000}, {100}, {0}};
  const VisitKernel kernel = Kernel("open_size");
  WithSession(batch, [&](Session& session, const std::vector<float>& expected) {
    const auto loaded = session.Load(kernel);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_EQ((*loaded)->Prepare(), absl::OkStatus());
    for (size_t point = 0; point < batch.points.size(); ++point) {
      const auto count = static_cast<size_t>(batch.points[point][0]);
      ASSERT_EQ(session.ClearOutputs(), absl::OkStatus());
      ASSERT_EQ((*loaded)->CallAt(point), absl::OkStatus());
      ExpectOutput(session, {expected.begin(), expected.begin() + static_cast<ptrdiff_t>(count)});
      std::vector<float> y(1000);
      ASSERT_EQ(session.CopyOutput(kY, {reinterpret_cast<char*>(y.data()), 4000}), absl::OkStatus());
      for (size_t i = count; i < y.size(); ++i) ASSERT_TRUE(std::isnan(y[i])) << i << " of " << count;
    }
    const auto seconds = (*loaded)->Time(3);
    ASSERT_TRUE(seconds.ok()) << seconds.status();
    EXPECT_GT(*seconds, 0);
  });
}

// A kernel must be right at every point, and must leave the rest of its outputs alone.
TEST_P(DeviceTest, CandidatesAreVerifiedAtEveryPoint) {
  const std::vector<std::string> names = {"open_size", "open_past_length", "open_wrong_when_short", "open_size"};
  VisitBatch batch = Batch(names);
  batch.points = {{1000}, {100}};
  batch.reference = Kernel("open_size");
  const VisitResult result = visit_runner_.Run(batch, -1);
  ASSERT_EQ(result.error, "");
  ASSERT_EQ(result.outcomes.size(), names.size());
  for (const size_t good : {0, 3}) {
    const auto* timing = std::get_if<VisitTiming>(&result.outcomes[good]);
    ASSERT_NE(timing, nullptr) << std::get<VisitFailure>(result.outcomes[good]).text;
    EXPECT_GT(timing->seconds.front(), 0);
  }
  for (const size_t bad : {1, 2}) {
    const auto* failure = std::get_if<VisitFailure>(&result.outcomes[bad]);
    ASSERT_NE(failure, nullptr) << names[bad] << " was not found out";
    EXPECT_EQ(failure->kind, FailureKind::kWrongOutput) << failure->text;
  }
}

TEST_P(DeviceTest, LaunchesFollowOneAnother) {
  const VisitKernel kernel = Kernel("two_launches");
  WithSession(Batch(), [&](Session& session, const std::vector<float>& expected) {
    for (int i = 0; i < 20; ++i) ExpectComputes(session, kernel, expected);
  });
}

TEST_P(DeviceTest, ConstantsArePackedBeforeTheFirstCall) {
  const VisitKernel kernel = Kernel("packed_double");
  WithSession(Batch(),
              [&](Session& session, const std::vector<float>& expected) { ExpectComputes(session, kernel, expected); });
}

TEST_P(DeviceTest, SeveralKernelsLiveSideBySide) {
  const VisitKernel packed = Kernel("packed_double"), good = Kernel("good");
  WithSession(Batch(), [&](Session& session, const std::vector<float>& expected) {
    const auto one = session.Load(packed), two = session.Load(packed);
    ASSERT_TRUE(one.ok() && two.ok());
    ASSERT_TRUE((*one)->Prepare().ok() && (*two)->Prepare().ok());
    ExpectComputes(session, good, expected);
    for (const auto* kernel : {&one, &two, &one}) {
      ASSERT_EQ(session.ClearOutputs(), absl::OkStatus());
      ASSERT_EQ((**kernel)->CallAt(0), absl::OkStatus());
      ExpectOutput(session, expected);
    }
  });
}

// Whole calls are timed, so their times cannot add up to more than the wall clock measured.
TEST_P(DeviceTest, TimesArePartOfTheTimeThatPasses) {
  const VisitKernel kernel = Kernel("good");
  VisitBatch batch = Batch();
  batch.policy.constant_bytes_between_runs = 100'000;
  WithSession(batch, [&](Session& session, const std::vector<float>& expected) {
    const auto loaded = session.Load(kernel);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_EQ((*loaded)->Prepare(), absl::OkStatus());
    for (const int64_t calls : {1, 7, 100}) {
      const double start = SecondsNow();
      const auto seconds = (*loaded)->Time(calls);
      const double passed = SecondsNow() - start;
      ASSERT_TRUE(seconds.ok()) << seconds.status();
      EXPECT_GT(*seconds, 0);
      EXPECT_LE(*seconds * static_cast<double>(calls), passed);
    }
    // The session must be back on the true constants.
    ASSERT_EQ(session.ClearOutputs(), absl::OkStatus());
    ASSERT_EQ((*loaded)->CallAt(0), absl::OkStatus());
    ExpectOutput(session, expected);
    const auto reference = session.TimeReference();
    ASSERT_TRUE(reference.ok()) << reference.status();
    EXPECT_GT(*reference, 0);
  });
}

TEST_P(DeviceTest, WritesBesideABufferAreFound) {
  for (const char* name : {"past_end", "before_begin"}) {
    const VisitKernel kernel = Kernel(name), good = Kernel("good");
    const VisitBatch batch = Batch({"good", name});
    WithSession(batch, [&](Session& session, const std::vector<float>&) {
      absl::StatusOr<ResultMemory> result_memory = ResultMemory::Create(batch);
      ASSERT_TRUE(result_memory.ok()) << result_memory.status();
      for (const VisitKernel* each : {&good, &kernel}) {
        const auto loaded = session.Load(*each);
        ASSERT_TRUE(loaded.ok()) << loaded.status();
        ASSERT_EQ((*loaded)->Prepare(), absl::OkStatus());
        ASSERT_EQ((*loaded)->CallAt(0), absl::OkStatus());
        result_memory->ClearGuards();
        ASSERT_EQ((*loaded)->StoreGuards(*result_memory), absl::OkStatus());
        const std::optional<VisitFailure> damage = result_memory->CheckGuards(each->interface);
        ASSERT_EQ(damage.has_value(), each == &kernel) << name;
        if (!damage.has_value()) continue;
        EXPECT_EQ(damage->kind, FailureKind::kOutOfBoundsWrite);
        EXPECT_THAT(damage->text, HasSubstr("'y'"));
      }
    });
  }
}

TEST_P(DeviceTest, RefusedKernelLeavesSessionUsable) {
  const VisitKernel missing = Kernel("no_such_function"), good = Kernel("good");
  VisitKernel huge = Kernel("two_launches");
  huge.interface.workspace_bytes = int64_t{1} << 47;
  VisitKernel other_grid = Kernel("good");
  const bool has_grid = GetParam().lanes > 0;
  other_grid.interface.main[0].groups = has_grid ? 0 : 1;
  other_grid.interface.main[0].lanes = has_grid ? 0 : 1;
  WithSession(Batch(), [&](Session& session, const std::vector<float>& expected) {
    const absl::Status absent = session.Load(missing).status();
    EXPECT_TRUE(absl::IsNotFound(absent) || absl::IsInvalidArgument(absent)) << absent;
    EXPECT_THAT(std::string(absent.message()), HasSubstr("no_such_function"));
    EXPECT_EQ(session.Load(huge).status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(session.Load(other_grid).status().code(), absl::StatusCode::kInvalidArgument);
    ExpectComputes(session, good, expected);
  });
}

TEST_P(DeviceTest, GoodKernelsAreTimedInAVisit) {
  auto outcomes = Visit({"good", "slow", "two_launches", "packed_double"});
  for (const auto& [name, outcome] : outcomes) {
    const auto* timing = std::get_if<VisitTiming>(&outcome);
    ASSERT_NE(timing, nullptr) << name << ": " << std::get<VisitFailure>(outcome).text;
    EXPECT_GE(timing->calls_per_repeat, 1);
    for (const double seconds : timing->seconds) EXPECT_GT(seconds, 0);
  }
}

TEST_P(DeviceTest, PrestartedDeviceMeasuresTheSame) {
  Visit({"good"});
  for (int visit = 0; visit < 2; ++visit) {
    visit_runner_.PrestartChildren();
    auto outcomes = Visit({"good", "packed_double", "past_end", "two_launches"});
    for (const char* good : {"good", "packed_double", "two_launches"}) {
      EXPECT_TRUE(std::holds_alternative<VisitTiming>(outcomes[good])) << good;
    }
    const auto* failure = std::get_if<VisitFailure>(&outcomes["past_end"]);
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(failure->kind, FailureKind::kOutOfBoundsWrite);
  }
}

TEST_P(DeviceTest, WrongOutputIsReported) {
  for (const char* name : {"wrong", "incomplete"}) {
    const VisitFailure failure = FailureFromStatus(name);
    EXPECT_EQ(failure.kind, FailureKind::kWrongOutput) << failure.text;
    EXPECT_THAT(failure.text, HasSubstr("output 'y'"));
  }
  EXPECT_EQ(FailureFromStatus("write_input").kind, FailureKind::kWrongOutput);
}

TEST_P(DeviceTest, OutOfBoundsWriteIsReported) {
  EXPECT_EQ(FailureFromStatus("past_end").kind, FailureKind::kOutOfBoundsWrite);
}

TEST_P(DeviceTest, HangIsReportedAsTimeout) {
  const VisitFailure failure = FailureFromStatus("hang");
  EXPECT_EQ(failure.kind, FailureKind::kRunTimeout) << failure.text;
}

TEST_P(DeviceTest, CrashIsReportedAsCrash) {
  if (!GetParam().kernels_crash) GTEST_SKIP() << "no kernel ends the process on this device";
  const VisitFailure failure = FailureFromStatus("crash");
  EXPECT_EQ(failure.kind, FailureKind::kCrashed) << failure.text;
}

TEST_P(DeviceTest, MissingFunctionIsACompileError) {
  EXPECT_EQ(FailureFromStatus("no_such_function").kind, FailureKind::kCompileError);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::ValuesIn(Subjects()),
                         [](const auto& subject) { return subject.param.name; });

// A batch of functions that the fake device knows.
VisitBatch FakeBatch(const std::vector<std::string>& candidates) {
  VisitBatch batch;
  batch.artifact = "fake";
  batch.buffers = {{"x", BufferRole::kInput, "f32", 1000, 4000, -1, 1},
                   {"w", BufferRole::kConstant, "f32", 1000, 4000, -1, 1},
                   {"y", BufferRole::kOutput, "f32", 1000, 4000}};
  batch.reference = {HandMadeInterface("good", 1, 1)};
  for (const std::string& name : candidates) batch.candidates.push_back({name, {HandMadeInterface(name, 1, 1)}});
  return batch;
}

// Only the fake device has a compiler that never ends.
TEST(FakeDevice, HangingCompilerIsDistinguishedFromHangingKernel) {
  for (const int builders : {0, 2}) {
    const FakeDevice device(builders);
    const VisitResult result = VisitRunner(device, {}).Run(FakeBatch({"never_built", "good", "hang", "slow"}), -1);
    ASSERT_EQ(result.error, "");
    EXPECT_EQ(std::get<VisitFailure>(result.outcomes[0]).kind, FailureKind::kCompileTimeout);
    EXPECT_EQ(std::get<VisitFailure>(result.outcomes[2]).kind, FailureKind::kRunTimeout);
    EXPECT_TRUE(std::holds_alternative<VisitTiming>(result.outcomes[1]));
    EXPECT_TRUE(std::holds_alternative<VisitTiming>(result.outcomes[3]));
  }
}

TEST(FakeDevice, InputsAreUnchangedForTheNextCandidate) {
  for (const char* evil : {"wrong_and_write_input", "write_input"}) {
    const VisitResult result = VisitRunner(FakeDevice(), {}).Run(FakeBatch({"good", evil, "slow"}), -1);
    ASSERT_EQ(result.error, "");
    EXPECT_TRUE(std::holds_alternative<VisitTiming>(result.outcomes[0]));
    EXPECT_EQ(std::get<VisitFailure>(result.outcomes[1]).kind, FailureKind::kWrongOutput) << evil;
    EXPECT_TRUE(std::holds_alternative<VisitTiming>(result.outcomes[2])) << evil;
  }
}

// The device's free memory holds only one kernel at a time.
TEST(FakeDevice, KernelsAreReloadedWhenMemoryIsShort) {
  VisitBatch batch = FakeBatch({"good", "slow", "two_launches", "two_launches"});
  batch.candidates[2].kernel.interface.workspace_bytes = int64_t{2} << 30;
  for (const bool final : {false, true}) {
    batch.final = final;
    const VisitResult result = VisitRunner(FakeDevice(FakeNature{.seconds = {}, .room = 1}), {}).Run(batch, -1);
    ASSERT_EQ(result.error, "");
    for (const size_t i : {0, 1, 3}) EXPECT_TRUE(std::holds_alternative<VisitTiming>(result.outcomes[i])) << i;
    const auto* const failure = std::get_if<VisitFailure>(&result.outcomes[2]);
    ASSERT_NE(failure, nullptr) << "more than there is";
    EXPECT_EQ(failure->kind, FailureKind::kLostDevice) << "nothing is wrong with it";
    EXPECT_THAT(failure->text, HasSubstr("no memory"));
  }
}

// Returns the timings of `count` equal kernels on a device that reports the given seconds. All reported seconds are far
// below the real ones.
std::vector<VisitTiming> TimedEquals(size_t count, bool final,
                                     const std::function<double(const FakeNature::Asked&)>& seconds) {
  VisitBatch batch = FakeBatch(std::vector<std::string>(count, "good"));
  batch.final = final;
  batch.policy.min_seconds_first = 0.01;
  const FakeDevice device(FakeNature{.seconds = seconds});
  const VisitResult result = VisitRunner(device, {}).Run(batch, -1);
  EXPECT_EQ(result.error, "");
  std::vector<VisitTiming> timings;
  for (const VisitOutcome& outcome : result.outcomes) timings.push_back(std::get<VisitTiming>(outcome));
  return timings;
}

TEST(FakeDevice, MeasurementOverheadIsNotCounted) {
  const auto timings = TimedEquals(3, false, [](const FakeNature::Asked& asked) {
    return 1e-8 + 4e-8 / static_cast<double>(asked.calls);  // starting a row of calls takes as long as four calls
  });
  for (const VisitTiming& timing : timings) {
    EXPECT_GT(timing.calls_per_repeat, 1);
    EXPECT_GE(timing.first_interleaved, 3) << "hopeless only by its first call";
  }
}

TEST(FakeDevice, OrderDoesNotMatterOnADeviceThatSlowsDown) {
  const auto timings = TimedEquals(
      4, true, [](const FakeNature::Asked& asked) { return 1e-8 * std::pow(1.003, static_cast<double>(asked.timed)); });
  for (const VisitTiming& a : timings) {
    const auto first = static_cast<size_t>(a.first_interleaved);
    ASSERT_GE(a.seconds.size() - first, 11U);
    for (const VisitTiming& b : timings) {
      ASSERT_EQ(b.seconds.size() - static_cast<size_t>(b.first_interleaved), a.seconds.size() - first);
      size_t won = 0;
      for (size_t i = 0; first + i < a.seconds.size(); ++i) {
        won += a.seconds[first + i] < b.seconds[static_cast<size_t>(b.first_interleaved) + i] ? 1 : 0;
      }
      EXPECT_LT(4 * won, 3 * (a.seconds.size() - first)) << "the share of pairs that wins a confirmation";
    }
  }
}

TEST(FakeDevice, IdleDeviceIsWarmedUpBeforeTiming) {
  const auto timings = TimedEquals(
      2, false, [](const FakeNature::Asked& asked) { return asked.timed + asked.references < 20 ? 2e-8 : 1e-8; });
  for (const VisitTiming& timing : timings) {
    for (const double seconds : timing.seconds) EXPECT_EQ(seconds, 1e-8);
  }
}

TEST(FakeDevice, KernelsAreBuiltSideBySideBeforeTheyAreTimed) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const VisitBatch batch = FakeBatch({"beside", "beside", "good", "no_such_function"});
  const FakeDevice device(2, folder.path());
  const VisitResult result = VisitRunner(device, {}).Run(batch, -1);
  ASSERT_EQ(result.error, "");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::holds_alternative<VisitTiming>(result.outcomes[i])) << i;
  EXPECT_EQ(std::get<VisitFailure>(result.outcomes[3]).kind, FailureKind::kCompileError);

  const TemporaryFolder other = TemporaryFolder::Create().value();
  const VisitResult alone = VisitRunner(FakeDevice(1, other.path()), {}).Run(batch, -1);
  EXPECT_EQ(std::get<VisitFailure>(alone.outcomes[0]).kind, FailureKind::kCompileTimeout) << "one after the other";
}

// The fake device leaves a file for every process in which it was started.
class PrestartTest : public testing::Test {
 protected:
  std::vector<pid_t> Started() const {
    constexpr std::string_view kPrefix = "started-";
    std::vector<pid_t> started;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename();
      if (name.starts_with(kPrefix)) started.push_back(std::stoi(name.substr(kPrefix.size())));
    }
    return started;
  }
  void ExpectTimed(const VisitBatch& batch) {
    const VisitResult result = visit_runner_.Run(batch, -1);
    ASSERT_EQ(result.error, "");
    for (const VisitOutcome& outcome : result.outcomes) EXPECT_TRUE(std::holds_alternative<VisitTiming>(outcome));
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const FakeDevice device_{0, folder_.path()};
  VisitRunner visit_runner_{device_, {}};
  VisitBatch batch_ = FakeBatch({"good", "slow"});
};

TEST_F(PrestartTest, VisitUsesPrestartedChildren) {
  visit_runner_.PrestartChildren();
  EXPECT_EQ(Started().size(), 0u) << "no visit has shown yet how many children it needs";
  ExpectTimed(batch_);
  EXPECT_EQ(Started().size(), 2u) << "one for the reference, one that measures";
  visit_runner_.PrestartChildren();
  EXPECT_EQ(Started().size(), 4u) << "as many as the last visit began with";
  batch_.fill_seed = 2;
  ExpectTimed(batch_);
  EXPECT_EQ(Started().size(), 4u);
  visit_runner_.PrestartChildren();
  EXPECT_EQ(Started().size(), 6u);
  ExpectTimed(batch_);
  EXPECT_EQ(Started().size(), 6u) << "its reference is known";
  ExpectTimed(batch_);
  EXPECT_EQ(Started().size(), 7u) << "what was left has ended with the visit";
  visit_runner_.PrestartChildren();
  EXPECT_EQ(Started().size(), 8u);
}

TEST_F(PrestartTest, DeadPrestartedChildIsReplaced) {
  ExpectTimed(batch_);
  visit_runner_.PrestartChildren();
  for (const pid_t pid : Started()) {
    siginfo_t ended;
    const auto child = static_cast<id_t>(pid);
    if (waitid(P_PID, child, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) continue;  // it has ended and was waited for
    kill(pid, SIGKILL);
    waitid(P_PID, child, &ended, WEXITED | WNOWAIT);
  }
  ExpectTimed(batch_);
  EXPECT_EQ(Started().size(), 5u);
}

TEST_F(PrestartTest, PrestartedChildForOtherBatchIsReplaced) {
  ExpectTimed(batch_);
  visit_runner_.PrestartChildren();
  batch_.threads = 2;
  ExpectTimed(batch_);
  EXPECT_EQ(Started().size(), 5u) << "of other threads";
  visit_runner_.PrestartChildren();
  batch_.policy.constant_bytes_between_runs = 100'000;
  ExpectTimed(batch_);
  EXPECT_EQ(Started().size(), 7u) << "it has no numbers that come round";
  visit_runner_.PrestartChildren();
  batch_.policy.constant_bytes_between_runs = 50'000;
  ExpectTimed(batch_);
  EXPECT_EQ(Started().size(), 8u);
}

// A driver that is older than the toolkit compiles the code again while loading it, which is slow.
TEST_F(PrestartTest, SlowLoadOfBuiltCodeTriggersPrebuild) {
  const FakeDevice device(2, folder_.path(), 5, true);
  VisitRunner visit_runner(device, {});
  const VisitBatch batch = FakeBatch({"slowly_built", "slowly_built", "slowly_built", "slowly_built"});
  for (const size_t started : {2, 5, 8}) {
    ASSERT_EQ(visit_runner.Run(batch, -1).error, "");
    EXPECT_EQ(Started().size(), started) << "from the second visit on, two processes build before one measures";
  }
}

TEST_F(PrestartTest, VisitReportsWhyDeviceDoesNotStart) {
  ExpectTimed(batch_);
  const std::filesystem::path broken = std::filesystem::path(folder_.path()) / "broken";
  std::ofstream(broken).put('x');
  visit_runner_.PrestartChildren();
  EXPECT_THAT(visit_runner_.Run(batch_, -1).error, HasSubstr("the fake device is broken"));
  std::filesystem::remove(broken);
  ExpectTimed(batch_);
}

TEST(FakeDevice, BuildingLeavesHalfOfALimitedTimeForMeasuring) {
  const FakeDevice device(2, "", 1000);
  VisitRunner visit_runner(device, {.memory_limit = 0, .cache_bytes = 1 << 20, .grace_seconds = 0.1});
  VisitBatch batch = FakeBatch({"good", "never_built", "slow", "never_built"});
  for (const double seconds : {1.0, 6.0}) {  // too short for building ahead, and long enough
    batch.policy.visit_seconds = seconds;
    const VisitResult result = visit_runner.Run(batch, -1);
    ASSERT_EQ(result.error, "");
    EXPECT_TRUE(std::holds_alternative<VisitTiming>(result.outcomes[0]));
    EXPECT_TRUE(std::holds_alternative<std::monostate>(result.outcomes[1])) << "no candidate is blamed for the time";
  }
}

}  // namespace
}  // namespace hone::agent
