#include "device_agent/make_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::agent {
namespace {

TEST(MakeDevice, TakesAKindAndWhereThereAreSeveralAName) {
  EXPECT_EQ((*MakeDevice("cpu", ""))->id(), "cpu");
  EXPECT_EQ((*MakeDevice("opencl", ""))->id(), "opencl");
  EXPECT_EQ((*MakeDevice("opencl:Some:GPU", ""))->id(), "opencl:Some:GPU");
}

TEST(MakeDevice, SaysWhatThereIs) {
  for (const char* text : {"", "gpu", "cpu:0", "openclx", "gpu:opencl"}) {
    const absl::Status status = MakeDevice(text, "").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("there are: cpu, opencl, opencl:NAME"));
  }
}

}  // namespace
}  // namespace hone::agent
