// SPDX-License-Identifier: Apache-2.0
// Devices whose drivers fail: the right part must be blamed, and no call may wait for ever.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "device_agent/child/child.h"
#include "device_agent/devices/cuda/cuda_device.h"
#include "device_agent/devices/lanes/lane_session.h"
#include "device_agent/devices/lanes/self_test.h"
#include "device_agent/devices/opencl/opencl_device.h"
#include "device_agent/launcher/confine_launcher.h"
#include "device_agent/launcher/visit_runner.h"
#include "device_agent/sandbox/sandbox.h"
#include "drivers/lane_drivers.h"
#include "tests/unit/device_agent/hand_made_kernels.h"

namespace hone::agent {
namespace {

// The first device of the fake library, even if the machine has others.
class OnFakeOpenCl : public OpenClDevice {
 public:
  explicit OnFakeOpenCl(const std::string& folder) : OpenClDevice("", folder), folder_(folder) {}
  absl::StatusOr<std::unique_ptr<StartedDevice>> Start(int) const override {
    drivers::opencl::Library library;
    drivers::opencl::Device device;
    HONE_RETURN_IF_ERROR(ToStatus(drivers::opencl::Library::Load(&library, HONE_FAKE_OPENCL)));
    HONE_RETURN_IF_ERROR(ToStatus(library.Open("", &device)));
    return StartedLaneDevice<drivers::OpenClDriver>::Start(std::move(device), folder_);
  }

 private:
  const std::string folder_;
};

// Lack of memory is not a crash: other programs may use the memory.
TEST(FailingDrivers, MissingMemoryBlamesNoKernel) {
  EXPECT_TRUE(absl::IsResourceExhausted(ToStatus({drivers::ErrorKind::kMemory, "no memory"})));
  EXPECT_EQ(FailureFromStatus(ToStatus({drivers::ErrorKind::kMemory, "no memory"})).kind, FailureKind::kLostDevice);
  EXPECT_EQ(FailureFromStatus(ToStatus({drivers::ErrorKind::kFault, "a fault"})).kind, FailureKind::kCrashed);
}

VisitBatch BatchOfLanes(const std::vector<std::string>& functions) {
  VisitBatch batch;
  batch.workload_digest = "lanes";
  batch.artifact = "kernels";
  batch.buffers = {{"x", BufferRole::kInput, "f32", 1000, 4000, -1, 1},
                   {"w", BufferRole::kConstant, "f32", 1000, 4000, -1, 1},
                   {"y", BufferRole::kOutput, "f32", 1000, 4000}};
  batch.reference = {HandMadeInterface("reference", 8, 128)};
  for (const std::string& name : functions) batch.candidates.push_back({name, {HandMadeInterface(name, 8, 128)}});
  batch.tolerance = {1e-5, 1e-6};
  return batch;
}

TEST(FailingOpenCl, FaultingKernelDoesNotAffectOthers) {
  // A sandboxed child cannot open files of the build, so the library is loaded in advance.
  ASSERT_NE(dlopen(HONE_FAKE_OPENCL, RTLD_NOW | RTLD_LOCAL), nullptr) << dlerror();
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const OnFakeOpenCl device(folder.path());
  VisitRunner visit_runner(device, {.filter = DetectCallFilter(device.sandbox())});
  const VisitBatch batch = BatchOfLanes({"good", "fault", "good"});
  const VisitResult result = visit_runner.Run(batch, -1);
  ASSERT_EQ(result.error, "");
  ASSERT_EQ(result.outcomes.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<VisitTiming>(result.outcomes[0]));
  EXPECT_TRUE(std::holds_alternative<VisitTiming>(result.outcomes[2]));
  const auto* const failure = std::get_if<VisitFailure>(&result.outcomes[1]);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->kind, FailureKind::kCrashed) << failure->text;
  EXPECT_THAT(failure->text, ::testing::HasSubstr("CL_OUT_OF_RESOURCES"));
}

VisitBatch BatchOfPtx() {
  VisitBatch batch = BatchOfLanes({"good"});
  batch.artifact = ".version 4.2\n.target sm_53\n.address_size 64\n.visible .entry good(.param .u64 x) {\n  ret;\n}\n";
  return batch;
}

// Each test of CUDA runs in a process of its own, because a driver that hangs cannot be used again.
void LoadFakeCudaWith(const char* variable, const char* value) {
  setenv(variable, value, 1);
  if (dlopen(HONE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL) == nullptr) _exit(2);
}

// Returns the verdict of the self-test for a device on which this kernel hangs or crashes.
absl::Status TestWith(const char* variable, const char* kernel) {
  LoadFakeCudaWith(variable, kernel);
  absl::Status status;
  {
    drivers::cuda::Library library;
    drivers::cuda::Device device;
    if (!drivers::cuda::Library::Load(&library).ok() || !library.Open("", &device).ok()) _exit(3);
    SelfTestResult test;
    status = TestLanes<drivers::CudaDriver>(device, "", test, std::chrono::milliseconds(50));
  }  // the process exits without waiting for a kernel that never ends
  return status;
}

[[noreturn]] void TestAndExit(const char* kernel_that_hangs) {
  _exit(absl::IsDeadlineExceeded(TestWith("HONE_FAKE_CUDA_HANG", kernel_that_hangs)) ? 0 : 1);
}

// CUDA's driver has compiled everything once a kernel is loaded, so loading must not launch it.
[[noreturn]] void LoadAndExit() {
  LoadFakeCudaWith("HONE_FAKE_CUDA_ARCH", "87");
  void* const driver = dlopen(HONE_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
  const auto launches = reinterpret_cast<int (*)()>(dlsym(driver, "hone_fake_cuda_launches"));
  const VisitBatch batch = BatchOfPtx();
  const std::vector<char> data(static_cast<size_t>(ComputeDataLayout(batch).input_bytes));
  const auto started = CudaDevice("", "").Start(1);
  if (!started.ok()) _exit(2);
  const auto session = (*started)->Open({.batch = &batch, .data = data.data(), .purpose = SessionPurpose::kBuilding});
  if (!session.ok()) _exit(3);
  const int before = launches();
  const auto loaded = (*session)->Load(batch.candidates[0].kernel);
  _exit(loaded.ok() && launches() == before ? 0 : 1);
}

TEST(FailingCuda, NothingIsLaunchedToBuild) { EXPECT_EXIT(LoadAndExit(), ::testing::ExitedWithCode(0), ""); }

TEST(FailingCuda, ADeviceThatHangsFailsItsSelfTest) {
  EXPECT_EXIT(TestAndExit("hone_reference"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(TestAndExit("hone_compute"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(TestAndExit("hone_read"), ::testing::ExitedWithCode(0), "");
}

TEST(FailingCuda, ADeviceThatFaultsFailsItsSelfTest) {
  const auto test = [](const char* kernel) {
    const absl::Status status = TestWith("HONE_FAKE_CUDA_CRASH", kernel);
    _exit(absl::IsInternal(status) ? 0 : 1);
  };
  for (const char* kernel : {"hone_reference", "hone_compute", "hone_read"}) {
    EXPECT_EXIT(test(kernel), ::testing::ExitedWithCode(0), "") << kernel;
  }
}

// The agent must start while another process uses the device exclusively.
TEST(FailingCuda, ADeviceThatIsFullOrBusySaysWhatItIs) {
  const auto tell = [](const char* answer) {
    LoadFakeCudaWith("HONE_FAKE_CUDA_RETAIN", answer);
    const auto first = CudaDevice("", "").Fingerprint(), same = CudaDevice("0", "").Fingerprint();
    if (!first.ok() || !same.ok()) _exit(1);
    _exit(first->cpu_model == "Fake CUDA device" && first->place == same->place && !first->place.empty() ? 0 : 4);
  };
  for (const char* answer : {"2", "46"}) EXPECT_EXIT(tell(answer), ::testing::ExitedWithCode(0), "") << answer;
}

TEST(FailingCuda, ADeviceThatAnotherProcessHasForItselfIsBusy) {
  EXPECT_EXIT(
      {
        LoadFakeCudaWith("HONE_FAKE_CUDA_RETAIN", "46");
        const SelfTestResult test = CudaDevice("", "").SelfTest(1);
        _exit(test.busy && !test.passed ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        LoadFakeCudaWith("HONE_FAKE_CUDA_BROKEN", "1");
        const SelfTestResult test = CudaDevice("", "").SelfTest(1);
        _exit(!test.busy && !test.passed ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hone::agent
