// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/make_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hone::agent {
namespace {

TEST(MakeDevice, ParsesKindAndOptionalName) {
  EXPECT_EQ((*MakeDevice("cpu", ""))->id(), "cpu");
  EXPECT_EQ((*MakeDevice("cpu:all", ""))->id(), "cpu:all");
  const absl::Status none = (*MakeDevice("cpu:0", ""))->Fingerprint().status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.message()), testing::HasSubstr("cpu:1 has CPUs"));
  EXPECT_EQ((*MakeDevice("opencl", ""))->id(), "opencl");
  EXPECT_EQ((*MakeDevice("opencl:Some:GPU", ""))->id(), "opencl:Some:GPU");
}

// A number must mean the same card in the sandbox, whichever cards this machine has.
TEST(MakeDevice, DriversReachAllTheirCards) {
  for (const char* text : {"cuda", "cuda:1", "opencl"}) {
    const std::vector<std::string> nodes = (*MakeDevice(text, ""))->sandbox().nodes;
    for (const char* node : {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia15", "/dev/nvidiactl", "/dev/nvidia-uvm",
                             "/dev/dxg", "/dev/nvmap", "/dev/nvhost-gpu", "/dev/nvhost-as-gpu", "/dev/nvgpu"}) {
      EXPECT_THAT(nodes, testing::Contains(node)) << text;
    }
    EXPECT_THAT(nodes, testing::Not(testing::Contains("/dev"))) << text;
  }
  EXPECT_THAT((*MakeDevice("opencl", ""))->sandbox().nodes, testing::Contains("/dev/dri"));
  EXPECT_TRUE((*MakeDevice("cpu", ""))->sandbox().nodes.empty());
}

// Where they are installed, if not in the system's own folders.
TEST(MakeDevice, DriversReachTheirFiles) {
  for (const char* text : {"cuda", "opencl"}) {
    const std::vector<std::string> files = (*MakeDevice(text, ""))->sandbox().readable;
    for (const char* folder : {"/run/opengl-driver", "/nix/store"})
      EXPECT_THAT(files, testing::Contains(folder)) << text;
  }
  for (const char* folder : {"/etc/OpenCL", "/opt/rocm", "/opt/amdgpu", "/opt/intel"}) {
    EXPECT_THAT((*MakeDevice("opencl", ""))->sandbox().readable, testing::Contains(folder));
  }
}

TEST(MakeDevice, SaysWhatThereIs) {
  for (const char* text : {"", "gpu", "openclx", "gpu:opencl"}) {
    const absl::Status status = MakeDevice(text, "").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("give one of: cpu, cpu:N, opencl, opencl:NAME"));
  }
}

}  // namespace
}  // namespace hone::agent
