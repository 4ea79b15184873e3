// What becomes of a kernel that faults, on a device of a library of our own (fake_opencl.cc): no driver is needed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "drivers/opencl.h"

namespace hone::drivers::opencl {
namespace {

Deadline InAMinute() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

// Runs the kernel, and says what becomes of the device. In processes of their own: a fault is of the whole process.
[[noreturn]] void RunAndExit(const char* name, Trouble expected) {
  Library library;
  Device device;
  Program program;
  Kernel kernel;
  Buffer buffer;
  const bool ready = Library::Load(&library, HONE_FAKE_OPENCL).ok() && library.Open("", &device).ok() &&
                     device.Build("kernels", {}, &program).ok() && program.Find(name, &kernel).ok() &&
                     device.Allocate(4000, &buffer).ok();
  if (!ready) _exit(2);
  for (int i = 0; i < 3; ++i) {
    if (!kernel.SetArg(i, buffer).ok()) _exit(3);
  }
  const Launch launch{&kernel, 8, 128};
  std::vector<std::byte> bytes(4000);
  const bool as_expected = device.Run({&launch, 1}, InAMinute()).trouble == expected &&
                           device.Finish().trouble == expected && device.Read(buffer, 0, bytes).trouble == expected &&
                           device.Fill(buffer, 0, 4, std::byte{0}).ok() == (expected == Trouble::kNone);
  _exit(as_expected ? 0 : 1);
}

TEST(OpenClFaults, AreNoFaultsOfTheProgram) {
  EXPECT_EXIT(RunAndExit("good", Trouble::kNone), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(RunAndExit("fault", Trouble::kFault), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hone::drivers::opencl
