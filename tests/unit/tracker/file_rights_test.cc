// SPDX-License-Identifier: Apache-2.0
#include "tracker/file_rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "base/digest.h"
#include "base/temporary_folder.h"
#include "tests/unit/files/made_up_files.h"
#include "transport/farm_identity.h"

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;

class FileRightsTest : public testing::Test {
 protected:
  // An agent's call with two results: one of kernels, and the report of a run with these outputs.
  static v1::SynchronizeRequest Reported(const std::string& digest, int64_t bytes) {
    v1::SynchronizeRequest request;
    request.add_finished()->mutable_result()->add_outcomes();
    v1::LeaseResult& run = *request.add_finished();
    run.mutable_lease()->set_lease_id("lease");
    v1::FileName& outputs = *run.mutable_result()->mutable_run()->add_packages()->mutable_outputs();
    outputs.set_digest(digest);
    outputs.set_bytes(bytes);
    return request;
  }
  // The error that takes the place of the report; "": the report stays.
  std::string Refused(const std::optional<FarmIdentity>& agent, const v1::SynchronizeRequest& request) {
    const std::optional<v1::SynchronizeRequest> changed = rights_.WithoutFalseOutputs(agent, request);
    if (!changed.has_value()) return "";
    EXPECT_EQ(changed->finished(0).result().outcomes_size(), 1) << "another result changed";
    EXPECT_EQ(changed->finished(1).lease().lease_id(), "lease");
    EXPECT_FALSE(changed->finished(1).result().has_run());
    return changed->finished(1).result().error();
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::unique_ptr<files::FileStore> files_ = files::FileStore::Open(folder_ / "files", {}).value();
  const FileRights rights_{nullptr, files_.get()};  // outputs need no farm
};

TEST_F(FileRightsTest, OutputsAreWhatTheAgentHasSent) {
  const std::string digest = files::Store(*files_, "outputs")->digest;
  const FarmIdentity board{Role::kAgent, "board"};
  EXPECT_THAT(Refused(board, Reported(digest, 7)), HasSubstr("has not sent")) << "another caller has";
  files_->AddHolder(digest, UriOf(board));
  EXPECT_EQ(Refused(board, Reported(digest, 7)), "");
  EXPECT_EQ(Refused(std::nullopt, Reported(digest, 7)), "");
  EXPECT_THAT(Refused(board, Reported(digest, 8)), HasSubstr("outputs of 8 bytes; its agent has sent 7"));
  EXPECT_THAT(Refused(std::nullopt, Reported(Sha256Hex("other"), 5)), HasSubstr("has not sent"));
}

}  // namespace
}  // namespace hone::tracker
