#include "device_agent/make_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::agent {
namespace {

TEST(MakeDevice, TakesAKindAndWhereThereAreSeveralAName) {
  EXPECT_EQ((*MakeDevice("cpu", ""))->id(), "cpu");
  EXPECT_EQ((*MakeDevice("cpu:all", ""))->id(), "cpu:all");
  const absl::Status none = (*MakeDevice("cpu:0", ""))->Fingerprint().status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.message()), testing::HasSubstr("cpu:1 has CPUs"));
  EXPECT_EQ((*MakeDevice("opencl", ""))->id(), "opencl");
  EXPECT_EQ((*MakeDevice("opencl:Some:GPU", ""))->id(), "opencl:Some:GPU");
}

TEST(MakeDevice, SaysWhatThereIs) {
  for (const char* text : {"", "gpu", "openclx", "gpu:opencl"}) {
    const absl::Status status = MakeDevice(text, "").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("there are: cpu, cpu:N, opencl, opencl:NAME"));
  }
}

}  // namespace
}  // namespace hone::agent
