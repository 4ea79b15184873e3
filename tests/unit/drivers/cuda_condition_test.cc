// SPDX-License-Identifier: Apache-2.0
// Temperature and clock of a CUDA device, on a fake library.
#include "drivers/cuda_condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "drivers/cuda.h"

namespace hone::drivers::cuda {
namespace {

using ::testing::HasSubstr;

std::string AddressOfTheFake() {
  Library library;
  std::vector<DeviceInfo> devices;
  EXPECT_TRUE(Library::Load(&library, HONE_FAKE_CUDA).ok());
  EXPECT_TRUE(library.ListDevices(&devices).ok());
  return devices.at(0).pci_address;
}

TEST(CudaCondition, ReadsTheDeviceWithThatPciAddress) {
  NvmlLibrary nvml;
  const Error e = NvmlLibrary::Load(&nvml, HONE_FAKE_NVML);
  ASSERT_TRUE(e.ok()) << e.text;
  const Condition condition = nvml.Read(AddressOfTheFake());
  EXPECT_EQ(condition.temperature_c, 61);
  EXPECT_EQ(condition.clock_mhz, 1755);
  EXPECT_EQ(condition.watts, 287.5);
  EXPECT_FALSE(condition.slowed_down);
  EXPECT_FALSE(nvml.Read("0000:66:00.0").temperature_c.has_value());
}

TEST(CudaCondition, SlowedDownMeansHeatOrLackOfPower) {
  NvmlLibrary nvml;
  ASSERT_TRUE(NvmlLibrary::Load(&nvml, HONE_FAKE_NVML).ok());
  const auto seen = [&](const char* reasons) {
    setenv("HONE_FAKE_THROTTLE", reasons, 1);
    return nvml.Read(AddressOfTheFake());
  };
  EXPECT_FALSE(seen("0x1").slowed_down);  // idle
  EXPECT_FALSE(seen("0x4").slowed_down);  // at the driver's power limit, as a busy device is
  for (const char* reasons : {"0x20", "0x41", "0x80"}) EXPECT_TRUE(seen(reasons).slowed_down) << reasons;
  for (const char* reasons : {"0x8", "0x48"}) EXPECT_TRUE(seen(reasons).seems_slowed_down) << reasons;
  EXPECT_FALSE(seen("0x8").slowed_down) << "it may be for a moment, while a clock changes";
  unsetenv("HONE_FAKE_THROTTLE");
}

TEST(CudaCondition, IsEmptyWithoutTheLibrary) {
  NvmlLibrary nvml;
  const Error e = NvmlLibrary::Load(&nvml, "libnvidia-ml-that-is-not-there.so");
  EXPECT_EQ(e.kind, ErrorKind::kAbsent);
  EXPECT_THAT(e.text, HasSubstr("there is no"));
  EXPECT_FALSE(nvml.Read("0000:65:00.0").temperature_c.has_value());
}

}  // namespace
}  // namespace hone::drivers::cuda
