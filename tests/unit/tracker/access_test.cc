#include "tracker/access.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "hone/v1/admin.pb.h"
#include "hone/v1/job.pb.h"
#include "hone/v1/record.pb.h"
#include "hone/v1/tuner.pb.h"

namespace hone::tracker {
namespace {

using testing::HasSubstr;

constexpr Role kRoles[] = {Role::kAgent, Role::kTuner, Role::kClient, Role::kViewer, Role::kAdmin};

// Of all services in all files of the protocol, whoever adds one.
std::set<std::string> AllMethods() {
  // Their descriptors are registered when their code is linked.
  for (const auto* linked : {v1::ListDevicesRequest::descriptor(), v1::SubmitJobRequest::descriptor(),
                             v1::RecordKey::descriptor(), v1::LeaseJobRequest::descriptor()}) {
    EXPECT_NE(linked, nullptr);
  }
  std::set<std::string> methods;
  const std::filesystem::path protos = HONE_SOURCE_DIR "/proto";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(protos)) {
    if (entry.path().extension() != ".proto") continue;
    const std::string name = std::filesystem::relative(entry.path(), protos);
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(name);
    EXPECT_NE(file, nullptr) << name << " is not linked into this test, so its services are not looked at";
    for (int s = 0; file != nullptr && s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.insert("/" + file->service(s)->full_name() + "/" + file->service(s)->method(m)->name());
      }
    }
  }
  return methods;
}

TEST(AccessTest, EveryMethodHasARule) {
  const std::set<std::string> methods = AllMethods();
  EXPECT_GE(methods.size(), 21u);
  for (const std::string& method : methods) EXPECT_TRUE(HasRule(method)) << "add " << method << " to tracker/access.cc";
}

TEST(AccessTest, WhoMayDoWhat) {
  const auto of = [](Role role) {
    std::set<std::string> allowed;
    for (const std::string& method : AllMethods()) {
      if (CheckRole(role, method).ok()) allowed.insert(method.substr(std::string("/hone.v1.").size()));
    }
    return allowed;
  };
  const std::set<std::string> agent = {"AgentService/Synchronize"};
  const std::set<std::string> reading = {"JobService/List",         "JobService/Get",       "JobService/Watch",
                                         "RecordService/Best",      "RecordService/Query",  "RecordService/ListBest",
                                         "RecordService/Stats",     "RecordService/Export", "AdminService/GetFarm",
                                         "AdminService/ListDevices"};
  std::set<std::string> client = reading;
  client.insert({"JobService/Submit", "JobService/Cancel"});
  std::set<std::string> admin = client;
  admin.insert({"AdminService/Drain", "AdminService/Undrain", "RecordService/Append"});
  EXPECT_EQ(of(Role::kAgent), agent);
  EXPECT_EQ(of(Role::kViewer), reading);
  EXPECT_EQ(of(Role::kClient), client);
  EXPECT_EQ(of(Role::kAdmin), admin);
  EXPECT_EQ(of(Role::kTuner),
            (std::set<std::string>{"TunerService/LeaseJob", "TunerService/ReportProgress", "TunerService/SubmitBatch",
                                   "TunerService/WaitBatch", "TunerService/CompleteJob", "AdminService/ListDevices",
                                   "RecordService/Append", "RecordService/Best", "RecordService/ListBest",
                                   "RecordService/Query", "RecordService/Stats"}));
}

TEST(AccessTest, WhatIsNotInTheTableNobodyMayCall) {
  for (const Role role : kRoles) {
    for (const char* method : {"", "/", "/hone.v1.AdminService/Reboot", "hone.v1.AgentService/Synchronize",
                               "/hone.v1.AgentService/synchronize", "/hone.v1.AgentService/Synchronize/"}) {
      EXPECT_EQ(CheckRole(role, method).code(), absl::StatusCode::kPermissionDenied) << method;
    }
    EXPECT_TRUE(CheckRole(role, "/grpc.health.v1.Health/Check").ok());
  }
}

TEST(AccessTest, ARefusalSaysWhatItTakes) {
  EXPECT_THAT(std::string(CheckRole(Role::kViewer, "/hone.v1.JobService/Cancel").message()),
              HasSubstr("role viewer may not call /hone.v1.JobService/Cancel; it takes client or admin"));
}

TEST(AccessTest, ACallerHasOneName) {
  const FarmIdentity board{Role::kAgent, "board"};
  EXPECT_TRUE(CheckName(board, "board").ok());
  for (const char* name : {"", "boar", "board2", "board/2", "Board"}) {
    EXPECT_EQ(CheckName(board, name).code(), absl::StatusCode::kPermissionDenied) << name;
  }
  EXPECT_TRUE(CheckName(std::nullopt, "anything").ok());
}

}  // namespace
}  // namespace hone::tracker
