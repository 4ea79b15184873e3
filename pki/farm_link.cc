#include "pki/farm_link.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"
#include "base/status.h"
#include "pki/certificates.h"
#include "pki/identity_folder.h"
#include "pki/join.h"

namespace hone::pki {
namespace {

constexpr absl::Duration kLongestPause = absl::Minutes(1);
constexpr absl::Duration kShortestPause = absl::Milliseconds(100);
constexpr absl::Duration kConnectSlice = absl::Milliseconds(200);  // between two looks whether to stop

}  // namespace

absl::StatusOr<std::unique_ptr<FarmLink>> FarmLink::Open(const std::string& address,
                                                         const std::filesystem::path& folder) {
  std::unique_ptr<FarmLink> link(new FarmLink(address, folder));
  HONE_RETURN_IF_ERROR(link->Reopen());
  if (!folder.empty()) link->thread_ = std::thread([raw = link.get()] { raw->KeepFresh(); });
  return link;
}

FarmLink::~FarmLink() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<grpc::Channel> FarmLink::channel() {
  const std::lock_guard lock(mutex_);
  return channel_;
}

std::shared_ptr<grpc::Channel> FarmLink::ConnectedChannel(absl::Duration patience, const std::stop_token& stop) {
  const std::shared_ptr<grpc::Channel> connected = channel();
  const absl::Time until = absl::Now() + patience;
  while (absl::Now() < until && !stop.stop_requested()) {
    const auto slice = std::chrono::system_clock::now() + absl::ToChronoMilliseconds(kConnectSlice);
    if (connected->WaitForConnected(slice)) break;
  }
  return connected;
}

TlsFiles FarmLink::Files() const { return folder_.empty() ? TlsFiles() : FilesIn(folder_); }

absl::Status FarmLink::Reopen() {
  if (!folder_.empty()) {
    HONE_ASSIGN_OR_RETURN(shown_, ReadFile(Files().identity));
  }
  HONE_ASSIGN_OR_RETURN(auto channel, OpenChannel(address_, Files()));
  const std::lock_guard lock(mutex_);
  channel_ = std::move(channel);
  return absl::OkStatus();
}

absl::Duration FarmLink::RenewIfDue() {
  const absl::StatusOr<std::string> stored = ReadFile(Files().identity);
  const auto facts = stored.ok() ? ReadCertificate(*stored) : stored.status();
  if (!facts.ok()) {
    spdlog::warn("{}: {}", folder_.string(), std::string(facts.status().message()));
    return kLongestPause;
  }
  absl::Status done = *stored == shown_ ? absl::OkStatus() : Reopen();
  const absl::Time now = absl::Now();
  const absl::Duration life = facts->until - facts->from;
  if (done.ok() && now >= RenewalTime(*facts) && now >= next_try_) {
    next_try_ = now + life / 100;
    done = Renew(channel(), folder_);
    if (done.ok()) done = Reopen();
    if (done.ok()) spdlog::info("the certificate was renewed");
  }
  if (!done.ok()) {
    spdlog::warn("the certificate, which ends at {}, cannot be renewed yet: {}", absl::FormatTime(facts->until),
                 std::string(done.message()));
  }
  return std::clamp(life / 50, kShortestPause, kLongestPause);
}

void FarmLink::KeepFresh() {
  while (true) {
    const absl::Duration pause = RenewIfDue();
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, absl::ToChronoMilliseconds(pause), [&] { return ending_; })) return;
  }
}

}  // namespace hone::pki
