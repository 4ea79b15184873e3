// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/farm/entrance.h"

#include "absl/time/clock.h"
#include "base/status.h"
#include "pki/identity_folder.h"
#include "pki/tracker_folder.h"

namespace hone::farm {

Entrance::Entrance(const std::filesystem::path& folder, bool tls)
    : folder_(folder), address_(tls ? "localhost:0" : "unix:" + (folder / "socket").string()) {
  if (!tls) return;
  HONE_CHECK(pki::MakeTrackerFolder(folder_ / "pki", {"localhost"}, absl::Now()).ok());
  authority_ = pki::ReadAuthority(folder_ / "pki").value();
}

TlsFiles Entrance::FilesOf(Role role, const std::string& name) const {
  const std::filesystem::path folder = folder_ / Name(role) / name;
  if (!std::filesystem::exists(folder)) {
    std::filesystem::create_directories(folder.parent_path());
    HONE_CHECK(pki::IssueIdentity(*authority_, folder, {role, name}, address_, absl::Now()).ok());
  }
  return pki::FilesIn(folder);
}

std::shared_ptr<grpc::Channel> Entrance::Open(Role role, const std::string& name) const {
  return OpenChannel(address_, authority_.has_value() ? FilesOf(role, name) : TlsFiles()).value();
}

}  // namespace hone::farm
