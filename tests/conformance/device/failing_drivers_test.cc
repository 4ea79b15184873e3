// Devices whose drivers fail: who is to blame, and that nobody waits for ever.
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
#include "device_agent/child.h"
#include "device_agent/cuda/cuda_device.h"
#include "device_agent/lanes/lane_session.h"
#include "device_agent/lanes/self_test.h"
#include "device_agent/opencl/opencl_device.h"
#include "device_agent/sandbox.h"
#include "device_agent/visit.h"
#include "drivers/lane_drivers.h"
#include "tests/unit/device_agent/hand_made_kernels.h"

namespace hone::agent {
namespace {

// The first device of the fake library, whichever other the machine has.
class OnFakeOpenCl : public OpenClDevice {
 public:
  explicit OnFakeOpenCl(const std::string& folder) : OpenClDevice("", folder), folder_(folder) {}
  absl::StatusOr<std::unique_ptr<StartedDevice>> Start(int) const override {
    drivers::opencl::Library library;
    drivers::opencl::Device device;
    HONE_RETURN_IF_ERROR(ToStatus(drivers::opencl::Library::Load(&library, HONE_FAKE_OPENCL)));
    HONE_RETURN_IF_ERROR(ToStatus(library.Open("", &device)));
    return StartedLanes<drivers::OpenClDriver>::Start(std::move(device), folder_);
  }

 private:
  const std::string folder_;
};

// Which is no crash: other programs may have it.
TEST(FailingDrivers, MemoryThatIsNotThereIsToldApart) {
  EXPECT_TRUE(absl::IsResourceExhausted(ToStatus({drivers::Trouble::kMemory, "no memory"})));
  EXPECT_EQ(FailureOf(ToStatus({drivers::Trouble::kMemory, "no memory"})).kind, FailureKind::kLostDevice);
  EXPECT_EQ(FailureOf(ToStatus({drivers::Trouble::kFault, "a fault"})).kind, FailureKind::kCrashed);
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

TEST(FailingOpenCl, OfAKernelThatFaultsNoOtherSuffers) {
  // A child behind the wall reaches no file of the build: it finds what is loaded.
  ASSERT_NE(dlopen(HONE_FAKE_OPENCL, RTLD_NOW | RTLD_LOCAL), nullptr) << dlerror();
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const OnFakeOpenCl device(folder.path());
  Visitor visitor(device, {.filter = TrySystemCalls(device.sandbox())});
  const VisitBatch batch = BatchOfLanes({"good", "fault", "good"});
  const VisitResult result = visitor.Run(batch, -1);
  ASSERT_EQ(result.error, "");
  ASSERT_EQ(result.outcomes.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<VisitTiming>(result.outcomes[0]));
  EXPECT_TRUE(std::holds_alternative<VisitTiming>(result.outcomes[2]));
  const auto* const failure = std::get_if<VisitFailure>(&result.outcomes[1]);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->kind, FailureKind::kCrashed) << failure->text;
  EXPECT_THAT(failure->text, ::testing::HasSubstr("CL_OUT_OF_RESOURCES"));
}

// Those of CUDA in processes of their own: a driver that hangs is of no use to others.
void LoadFakeCudaWith(const char* variable, const char* value) {
  setenv(variable, value, 1);
  if (dlopen(HONE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL) == nullptr) _exit(2);
}

[[noreturn]] void TestAndExit(const char* kernel_that_hangs) {
  LoadFakeCudaWith("HONE_FAKE_CUDA_HANG", kernel_that_hangs);
  absl::Status status;
  {
    drivers::cuda::Library library;
    drivers::cuda::Device device;
    if (!drivers::cuda::Library::Load(&library).ok() || !library.Open("", &device).ok()) _exit(3);
    SelfTestResult test;
    status = TestLanes<drivers::CudaDriver>(device, "", std::chrono::milliseconds(50), test);
  }  // what runs for ever is not waited for
  _exit(absl::IsDeadlineExceeded(status) ? 0 : 1);
}

TEST(FailingCuda, ADeviceThatHangsFailsItsSelfTest) {
  EXPECT_EXIT(TestAndExit("hone_reference"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(TestAndExit("hone_compute"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(TestAndExit("hone_read"), ::testing::ExitedWithCode(0), "");
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
