// SPDX-License-Identifier: Apache-2.0
#include "pki/farm_link.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "pki/identity_folder.h"
#include "pki/join.h"

namespace hone::pki {
namespace {

constexpr absl::Duration kRenewalPauseMax = absl::Minutes(1);
constexpr absl::Duration kRenewalPauseMin = absl::Milliseconds(100);
constexpr absl::Duration kConnectSlice = absl::Milliseconds(200);  // how often a wait checks for a stop

std::string HowToReplace(const FarmIdentity& identity) {
  return fmt::format(
      "remove that file and join with a new token from an admin (hone{} join HOST:PORT --token-file FILE), or, where "
      "certificates come from another authority, put a new one there (docs/howto/give-a-farm-certificates.md)",
      identity.role == Role::kAgent ? "-agent" : "");
}

}  // namespace

absl::StatusOr<std::string> CheckCertificateIn(const std::filesystem::path& folder, absl::Time now) {
  HONE_ASSIGN_OR_RETURN(const FarmIdentity identity, ReadIdentity(folder));
  const TlsFiles files = FilesIn(folder);
  HONE_ASSIGN_OR_RETURN(const std::string pem, ReadFile(files.identity));
  HONE_ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificate(pem));
  HONE_ASSIGN_OR_RETURN(const std::string authority, ReadFile(files.authority));
  // The rest of the file may be a chain of intermediate certificates up to the authority.
  if (!IsSignedBy(pem, pem + authority)) {
    return absl::UnauthenticatedError(fmt::format(
        "the authority in {} has not signed the certificate in {}, so the certificate belongs to another farm; {}",
        files.authority, files.identity, HowToReplace(identity)));
  }
  const auto about = [&](const char* verb) {
    return fmt::format(
        "the certificate in {} {} at {}; ask an admin to free its name (hone identity revoke {}), then {}",
        files.identity, verb, absl::FormatTime(facts.until, absl::UTCTimeZone()), identity.name,
        HowToReplace(identity));
  };
  if (now >= facts.until) return absl::UnauthenticatedError(about("ended"));
  if (std::string early = ClockBehindWarning(facts, now); !early.empty()) return early;
  return facts.until - now < (facts.until - facts.from) / 10 ? about("ends") : "";
}

bool RenewalSchedule::ShouldTry(const CertificateFacts& facts, absl::Time now, absl::Time steady) {
  if (now < RenewalTime(facts) || steady < next_) return false;
  next_ = steady + (facts.until - facts.from) / 100;
  return true;
}

absl::StatusOr<std::unique_ptr<FarmLink>> FarmLink::Open(const std::string& address,
                                                         const std::filesystem::path& folder) {
  if (!folder.empty()) HONE_RETURN_IF_ERROR(CheckCertificateIn(folder, absl::Now()).status());
  std::unique_ptr<FarmLink> link(new FarmLink(address, folder));
  HONE_RETURN_IF_ERROR(link->Reopen());
  if (!folder.empty()) link->thread_ = std::thread([raw = link.get()] { raw->RenewalLoop(); });
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

std::shared_ptr<grpc::Channel> FarmLink::AwaitConnectedChannel(absl::Duration patience, const std::stop_token& stop) {
  const std::shared_ptr<grpc::Channel> connected = channel();
  const absl::Time until = SteadyNow() + patience;
  while (SteadyNow() < until && !stop.stop_requested()) {
    const auto slice = std::chrono::system_clock::now() + absl::ToChronoMilliseconds(kConnectSlice);
    if (connected->WaitForConnected(slice)) break;
  }
  return connected;
}

TlsFiles FarmLink::Files() const { return folder_.empty() ? TlsFiles() : FilesIn(folder_); }

absl::Status FarmLink::Reopen() {
  if (!folder_.empty()) {
    HONE_ASSIGN_OR_RETURN(channel_identity_, ReadFile(Files().identity));
  }
  HONE_ASSIGN_OR_RETURN(auto channel, OpenChannel(address_, Files()));
  const std::lock_guard lock(mutex_);
  channel_ = std::move(channel);
  return absl::OkStatus();
}

void FarmLink::LogProblem(const std::string& wrong) {
  if (!wrong.empty() && wrong != logged_problem_) spdlog::error("{}", wrong);
  logged_problem_ = wrong;
}

absl::Duration FarmLink::RenewIfDue() {
  const absl::Time now = absl::Now();
  const absl::Status checked = CheckCertificateIn(folder_, now).status();
  const absl::StatusOr<std::string> stored = ReadFile(Files().identity);
  const auto facts = stored.ok() ? ReadCertificate(*stored) : stored.status();
  LogProblem(checked.ok() && facts.ok() ? ClockBehindWarning(*facts, now) : std::string(checked.message()));
  if (absl::IsUnauthenticated(checked) || !facts.ok()) return kRenewalPauseMax;
  absl::Status done = *stored == channel_identity_ ? absl::OkStatus() : Reopen();
  const absl::Duration life = facts->until - facts->from;
  if (done.ok() && renewal_schedule_.ShouldTry(*facts, now, SteadyNow())) {
    done = Renew(channel(), folder_);
    if (done.ok()) done = Reopen();
    if (done.ok()) spdlog::info("the certificate was renewed");
  }
  if (!done.ok()) {
    spdlog::warn("the certificate, which ends at {}, cannot be renewed yet: {}", absl::FormatTime(facts->until),
                 std::string(done.message()));
  }
  return std::clamp(life / 50, kRenewalPauseMin, kRenewalPauseMax);
}

void FarmLink::RenewalLoop() {
  while (true) {
    const absl::Duration pause = RenewIfDue();
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, absl::ToChronoMilliseconds(pause), [&] { return ending_; })) return;
  }
}

}  // namespace hone::pki
