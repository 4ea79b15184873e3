// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/device_convert.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

namespace hone::agent {
namespace {

// Names of the fields that have no value.
std::vector<std::string> Unset(const google::protobuf::Message& message) {
  std::vector<const google::protobuf::FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  std::vector<std::string> names;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const auto* field = message.GetDescriptor()->field(i);
    if (std::find(set.begin(), set.end(), field) == set.end()) names.emplace_back(field->name());
  }
  return names;
}

TEST(DeviceConvert, EveryFieldOfAFingerprintIsWritten) {
  const DeviceFingerprint fingerprint = {.architecture = "aarch64",
                                         .cpu_model = "Board",
                                         .cpu_features = {"asimd", "fp"},
                                         .physical_cores = 4,
                                         .logical_cpus = 8,
                                         .caches = {{1, "data", 32768, 64, 2}, {2, "unified", 1 << 20, 128, 8}},
                                         .memory_bytes = int64_t{8} << 30,
                                         .kernel = "6.1",
                                         .governor = "ondemand",
                                         .boost = "off",
                                         .smt = "on",
                                         .huge_pages = "always",
                                         .driver = "535.1",
                                         .text = "aarch64 Board",
                                         .digest = "abc"};
  const v1::DeviceFingerprint message = ToProto(fingerprint);
  EXPECT_THAT(Unset(message), testing::IsEmpty());
  EXPECT_THAT(message.cpu_features(), testing::ElementsAre("asimd", "fp"));
  ASSERT_EQ(message.caches_size(), 2);
  EXPECT_THAT(Unset(message.caches(0)), testing::IsEmpty());
  EXPECT_EQ(message.caches(1).line_bytes(), 128);
  EXPECT_EQ(message.physical_cores(), 4);
  EXPECT_EQ(message.logical_cpus(), 8);
  EXPECT_EQ(message.digest(), "abc");
  const v1::RunEnvironment environment = ToRunEnvironment(fingerprint);
  EXPECT_THAT(Unset(environment), testing::ElementsAre("agent_version", "device")) << "the tracker sets these";
  EXPECT_EQ(environment.kernel(), "6.1");
  EXPECT_EQ(environment.governor(), "ondemand");
  EXPECT_EQ(environment.driver(), "535.1");
}

TEST(DeviceConvert, EveryFieldOfASelfTestIsWritten) {
  SelfTestResult test = {true, "fine", 0.1, 0.2, 40.0, {1e11, {{UINT64_MAX, 2e10}}}};
  const v1::SelfTest message = ToProto(test);
  EXPECT_THAT(Unset(message), testing::ElementsAre("pending")) << "of a test that was not made";
  EXPECT_EQ(message.noise(), 0.2);
  EXPECT_EQ(message.bandwidth_gbps(), 20);
  test.temperature_c.reset();
  EXPECT_FALSE(ToProto(test).has_temperature_c()) << "a device that does not tell is not at 0 degrees";
}

}  // namespace
}  // namespace hone::agent
