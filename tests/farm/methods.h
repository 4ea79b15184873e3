// SPDX-License-Identifier: Apache-2.0
// All gRPC methods of the protocol. A test compares them with the tracker's access table, because a method without a
// rule must not be callable.
#ifndef HONE_TESTS_FARM_METHODS_H_
#define HONE_TESTS_FARM_METHODS_H_

#include <google/protobuf/descriptor.h>

#include <filesystem>
#include <set>
#include <string>

#include "base/status.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/agent.pb.h"
#include "hone/v1/file.pb.h"
#include "hone/v1/fleet_watch.pb.h"
#include "hone/v1/identity.pb.h"
#include "hone/v1/job.pb.h"
#include "hone/v1/record.pb.h"
#include "hone/v1/tuner.pb.h"

namespace hone::farm {

// Returns full method names such as "/hone.v1.AgentService/Synchronize", from all files under proto/. Aborts if one of
// the files is not linked into the test; then its header must be included here.
inline std::set<std::string> AllMethods() {
  // A file's descriptors are registered only if its generated code is linked.
  for (const auto* linked :
       {v1::ListDevicesRequest::descriptor(), v1::SubmitJobRequest::descriptor(), v1::RecordKey::descriptor(),
        v1::LeaseJobRequest::descriptor(), v1::SynchronizeRequest::descriptor(), v1::JoinRequest::descriptor(),
        v1::OfferFileRequest::descriptor(), v1::FleetWatch::descriptor()}) {
    HONE_CHECK(linked != nullptr);
  }
  std::set<std::string> methods;
  const std::filesystem::path protos = HONE_SOURCE_DIR "/proto";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(protos)) {
    if (entry.path().extension() != ".proto") continue;
    const std::string name = std::filesystem::relative(entry.path(), protos);
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(name);
    HONE_CHECK(file != nullptr);
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.insert("/" + file->service(s)->full_name() + "/" + file->service(s)->method(m)->name());
      }
    }
  }
  return methods;
}

}  // namespace hone::farm

#endif  // HONE_TESTS_FARM_METHODS_H_
