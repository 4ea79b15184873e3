// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/cpu/host.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "base/temporary_folder.h"
#include "device_agent/devices/cpu/reference_loop.h"
#include "device_agent/devices/cpu/throttling.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FakeRoot : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::string root_ = folder_ / "";
};

TEST_F(FakeRoot, ReadsThrottlingOfARaspberryPi) {
  Throttling throttling(root_);
  EXPECT_FALSE(throttling.IsThrottling()) << "it says nothing";
  for (const auto& [word, throttled] :
       {std::pair("0\n", false), std::pair("50000\n", false), std::pair("50005\n", true), std::pair("8\n", true)}) {
    Put("sys/devices/platform/soc/soc:firmware/get_throttled", word);
    EXPECT_EQ(throttling.IsThrottling(), throttled) << word;
  }
}

TEST_F(FakeRoot, ActiveCoolingDeviceMeansThrottling) {
  const std::string thermal = "sys/class/thermal/";
  Put(thermal + "cooling_device0/type", "pwm-fan\n");
  Put(thermal + "cooling_device0/cur_state", "3\n");
  Put(thermal + "cooling_device1/type", "Processor\n");
  Put(thermal + "cooling_device1/cur_state", "0\n");
  Put(thermal + "cooling_device2/type", "intel_powerclamp\n");
  Put(thermal + "cooling_device2/cur_state", "-1\n");
  Put(thermal + "thermal_zone0/type", "cpu-thermal\n");
  Put(thermal + "thermal_zone0/cur_state", "9\n");
  Throttling throttling(root_);
  EXPECT_FALSE(throttling.IsThrottling()) << "a fan slows down nothing";
  for (const char* type : {"cpufreq-cpu0", "thermal-cpufreq-0", "Processor", "cpu-throttle-alert", "thermal-idle-0"}) {
    Put(thermal + "cooling_device1/type", std::string(type) + "\n");
    for (const auto& [state, throttled] : {std::pair("2\n", true), std::pair("0\n", false)}) {
      Put(thermal + "cooling_device1/cur_state", state);
      EXPECT_EQ(throttling.IsThrottling(), throttled) << type << " " << state;
    }
  }
}

TEST_F(FakeRoot, ThermalInterruptMeansThrottling) {
  const std::string cpus = "sys/devices/system/cpu/";
  Put(cpus + "cpu0/thermal_throttle/core_throttle_count", "7\n");
  Put(cpus + "cpu0/thermal_throttle/package_throttle_count", "40\n");
  Put(cpus + "cpu11/thermal_throttle/core_throttle_count", "0\n");
  Put(cpus + "cpufreq/thermal_throttle/core_throttle_count", "1\n");
  Throttling throttling(root_);
  EXPECT_FALSE(throttling.IsThrottling()) << "it was before the agent";
  for (const char* counter :
       {"cpu0/thermal_throttle/package_throttle_count", "cpu11/thermal_throttle/core_throttle_count"}) {
    Put(cpus + counter, "41\n");
    EXPECT_TRUE(throttling.IsThrottling()) << counter;
    EXPECT_FALSE(throttling.IsThrottling()) << counter << " stands still again";
  }
  std::filesystem::remove_all(root_ + cpus + "cpu11");
  EXPECT_FALSE(throttling.IsThrottling()) << "a core was taken away";
}

TEST_F(FakeRoot, DeviceIsOneGroupOfEqualCores) {
  const std::vector<int> usable = UsableCpus();
  if (usable.size() < 2) GTEST_SKIP() << "needs two CPUs";
  std::string cpuinfo;
  for (const int cpu : usable) {
    const bool slow = cpu == usable.front();
    const std::string number = std::to_string(cpu);
    Put("sys/devices/system/cpu/cpu" + number + "/cpu_capacity", slow ? "446\n" : "1024\n");
    cpuinfo += "processor\t: " + number + "\nCPU implementer\t: 0x41\nCPU part\t: " + (slow ? "0xd05" : "0xd0b") + "\n";
  }
  Put("proc/cpuinfo", cpuinfo);
  const DeviceFingerprint fast = DetectHost(root_), slow = DetectHost(ChooseCores("2", root_).value(), root_);
  EXPECT_THAT(fast.text, HasSubstr(fmt::format("cores={0} cpus={0} group=1/2", usable.size() - 1)));
  EXPECT_THAT(fast.text, HasSubstr("0xd0b"));
  EXPECT_THAT(fast.text, Not(HasSubstr("0xd05")));
  EXPECT_THAT(slow.text, HasSubstr("0xd05 cores=1 cpus=1 group=2/2"));
  EXPECT_THAT(ChooseCores("2", root_)->cores.Cpus(), testing::ElementsAre(usable.front()));
  EXPECT_THAT(DetectHost(ChooseCores("all", root_).value(), root_).text, HasSubstr("group=all/2"));
  EXPECT_THAT(std::string(ChooseCores("3", root_).status().message()), HasSubstr("cpu:2 has CPUs"));
  for (const char* selector : {"0", "-1", "2x", "fast"}) EXPECT_FALSE(ChooseCores(selector, root_).ok()) << selector;
}

TEST_F(FakeRoot, BoardIsDescribed) {
  Put("proc/cpuinfo",
      "processor\t: 0\nFeatures\t: fp asimd neon\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd08\n");
  Put("proc/device-tree/model", std::string("Raspberry Pi 4 Model B\0", 23));
  for (int cpu = 0; cpu < 256; ++cpu) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
    Put(folder + "cache/index0/level", "1\n");
    Put(folder + "cache/index0/type", "Data\n");
    Put(folder + "cache/index0/size", "32K\n");
    Put(folder + "cache/index0/coherency_line_size", "64\n");
    Put(folder + "cache/index0/shared_cpu_list", "0-1,4\n");
    Put(folder + "cpufreq/scaling_governor", "ondemand\n");
    Put(folder + "cpufreq/scaling_cur_freq", "1500000\n");
  }
  Put("sys/class/thermal/thermal_zone0/temp", "41000\n");
  Put("sys/class/thermal/thermal_zone1/temp", "55500\n");
  const DeviceFingerprint fingerprint = DetectHost(root_);
  EXPECT_EQ(fingerprint.cpu_model, "Raspberry Pi 4 Model B 0x41 0x3 0xd08");
  EXPECT_THAT(fingerprint.cpu_features, testing::ElementsAre("asimd", "fp", "neon"));
  ASSERT_EQ(fingerprint.caches.size(), 1u);
  EXPECT_EQ(fingerprint.caches[0].bytes, 32768);
  EXPECT_EQ(fingerprint.caches[0].shared_by, 3);
  EXPECT_EQ(fingerprint.governor, "ondemand");
  EXPECT_THAT(fingerprint.text, HasSubstr("l1=32768/3 asimd fp neon"));
  EXPECT_EQ(ReadHostSensors(root_).temperature_c, 55.5);
  EXPECT_EQ(ReadHostSensors(root_).clock_mhz, 1500);
  DeviceFingerprint later = fingerprint;
  Put("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "performance\n");
  ReadEnvironment({3}, later, root_);
  EXPECT_EQ(later.governor, "performance");
  EXPECT_EQ(later.kernel, fingerprint.kernel);
  EXPECT_EQ(later.text, fingerprint.text);
}

TEST_F(FakeRoot, SilentBoardHasEmptyFields) {
  const DeviceFingerprint fingerprint = DetectHost(root_);
  EXPECT_EQ(fingerprint.governor, "");
  EXPECT_FALSE(fingerprint.text.empty());
  EXPECT_FALSE(ReadHostSensors(root_).temperature_c.has_value());
}

TEST_F(FakeRoot, APowerSensorOfTheBoardIsRead) {
  EXPECT_FALSE(ReadHostSensors(root_).watts.has_value());
  EXPECT_FALSE(ReadHostSensors(root_).joules.has_value());
  // A battery's power says nothing of a machine that is charged, and the first channel is not the supply.
  Put("sys/class/hwmon/hwmon0/name", "BAT0\n");
  Put("sys/class/hwmon/hwmon0/power1_input", "90000000\n");
  Put("sys/class/hwmon/hwmon1/name", "ina3221\n");
  Put("sys/class/hwmon/hwmon1/in1_label", "VDD_CPU_GPU_CV\n");
  Put("sys/class/hwmon/hwmon1/in1_input", "5000\n");
  Put("sys/class/hwmon/hwmon1/curr1_input", "400\n");
  Put("sys/class/hwmon/hwmon1/in2_label", "VDD_IN\n");
  Put("sys/class/hwmon/hwmon1/in2_input", "5000\n");
  Put("sys/class/hwmon/hwmon1/curr2_input", "1500\n");
  EXPECT_DOUBLE_EQ(*ReadHostSensors(root_).watts, 7.5);
  Put("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  Put("sys/class/powercap/intel-rapl:0/energy_uj", "3000000\n");
  Put("sys/class/powercap/intel-rapl:1/name", "package-1\n");
  Put("sys/class/powercap/intel-rapl:1/energy_uj", "1000000\n");
  Put("sys/class/powercap/intel-rapl:2/name", "psys\n");
  Put("sys/class/powercap/intel-rapl:2/energy_uj", "9000000\n");
  EXPECT_DOUBLE_EQ(*ReadHostSensors(root_).joules, 4);
}

TEST(Host, DigestCoversHardwareAndNotTheEnvironment) {
  DeviceFingerprint fingerprint = DetectHost();
  const std::string text = FingerprintText(fingerprint);
  EXPECT_EQ(fingerprint.text, text);
  fingerprint.kernel = "another";
  fingerprint.governor = "another";
  EXPECT_EQ(FingerprintText(fingerprint), text);
  fingerprint.logical_cpus = 1000;
  EXPECT_NE(FingerprintText(fingerprint), text);
}

TEST(Host, SelfTestOfThisMachinePasses) {
  EXPECT_TRUE(ReferenceLoopIsRight());
  const SelfTestResult test = TestHost(1);
  EXPECT_TRUE(test.passed) << test.reason;
  EXPECT_GT(test.reference_seconds, 0);
  EXPECT_GT(test.roofline.flops_per_second, 0);
  EXPECT_GT(test.roofline.levels.back().bytes_per_second, 0);
}

}  // namespace
}  // namespace hone::agent
