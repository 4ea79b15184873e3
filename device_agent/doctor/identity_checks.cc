// SPDX-License-Identifier: Apache-2.0
#include "device_agent/doctor/identity_checks.h"

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/private_folder.h"
#include "pki/farm_link.h"
#include "pki/identity_folder.h"
#include "pki/join.h"
#include "transport/transport.h"

namespace hone::agent {
namespace {

constexpr char kAnew[] = "remove identity.pem, and join with a new token from an admin";
constexpr absl::Duration kClockSkewMax = absl::Seconds(5);
constexpr absl::Duration kSoon = absl::Hours(24 * 14);

std::string Text(const absl::Status& status) { return std::string(status.message()); }

Finding AskTracker(const std::filesystem::path& folder, const std::string& address) {
  const auto channel = OpenChannel(address, pki::FilesIn(folder));
  if (!channel.ok()) return TrackerUnreachable(address, channel.status());
  const absl::Time sent = absl::Now();
  const absl::StatusOr<absl::Time> tracker_time = pki::TrackerTime(*channel);
  if (!tracker_time.ok()) return TrackerUnreachable(address, tracker_time.status());
  return CheckClockSkew(sent, *tracker_time, absl::Now());
}

}  // namespace

Finding CheckFolder(const std::filesystem::path& folder) {
  const auto identity = pki::ReadIdentity(folder);
  if (identity.ok()) {
    return {"identity", Verdict::kGood,
            fmt::format("{} '{}', in {}", Name(identity->role), identity->name, folder.string()), ""};
  }
  if (absl::IsNotFound(identity.status())) {
    return {"identity", Verdict::kNote, Text(identity.status()), "hone-agent join HOST:PORT --token-file FILE"};
  }
  return {"identity", Verdict::kBad, Text(identity.status()),
          fmt::format("sudo chmod -R go= {0}    # and, as its owner must be USER: sudo chown -R USER {0}",
                      folder.string())};
}

Finding CheckCertificate(const pki::CertificateFacts& facts, bool renewed, absl::Time now) {
  const int64_t days = (facts.until - now) / absl::Hours(24);
  const std::string until = absl::FormatTime("%Y-%m-%d", facts.until, absl::UTCTimeZone());
  if (now < facts.from) {
    return {"certificate", Verdict::kBad, "the certificate is not valid yet: this machine's clock is behind",
            "sudo timedatectl set-ntp true"};
  }
  const std::string what = fmt::format("valid until {}, {} days", until, days);
  if (renewed && now > pki::RenewalTime(facts) + (facts.until - pki::RenewalTime(facts)) / 4) {
    return {"certificate", Verdict::kBad, what + "; the agent should have renewed it by now",
            "systemctl restart hone-agent; journalctl -u hone-agent    # the log has the reason"};
  }
  if (!renewed && facts.until - now < kSoon) return {"certificate", Verdict::kNote, what, kAnew};
  return {"certificate", Verdict::kGood, what, ""};
}

Finding CheckClockSkew(absl::Time sent, absl::Time tracker_time, absl::Time heard) {
  // The tracker's clock may have been read at any moment of the call.
  const absl::Duration ahead = sent - tracker_time, behind = tracker_time - heard;
  if (ahead <= kClockSkewMax && behind <= kClockSkewMax)
    return {"tracker", Verdict::kGood, "it answers, and its clock agrees with this machine's", ""};
  return {"tracker", Verdict::kBad,
          fmt::format("this machine's clock is {:.0f} s {} the tracker's",
                      absl::ToDoubleSeconds(std::max(ahead, behind)), ahead > behind ? "ahead of" : "behind"),
          "sudo timedatectl set-ntp true    # on the machine whose clock is wrong"};
}

Finding TrackerUnreachable(const std::string& address, const absl::Status& why) {
  return {"tracker", Verdict::kBad, fmt::format("{} does not answer correctly: {}", address, Text(why)),
          "check the address, that hone-tracker runs there, and the firewall"};
}

std::vector<Finding> CheckIdentity(const std::filesystem::path& folder, const std::string& address, bool renewed) {
  std::vector<Finding> findings = {CheckFolder(folder)};
  if (findings.front().verdict != Verdict::kGood) return findings;
  const absl::Time now = absl::Now();
  // A tracker does not answer a program with an invalid certificate, so its silence would prove nothing.
  if (const absl::Status taken = pki::CheckCertificateIn(folder, now).status(); !taken.ok()) {
    findings.push_back({"certificate", Verdict::kBad, Text(taken), kAnew});
    return findings;
  }
  const auto pem = pki::ReadFile(pki::FilesIn(folder).identity);
  const auto facts = pem.ok() ? pki::ReadCertificate(*pem) : pem.status();
  if (facts.ok()) findings.push_back(CheckCertificate(*facts, renewed, now));
  std::string tracker = address;
  if (const auto settings = pki::ReadSettings(folder); tracker.empty() && settings.ok()) tracker = settings->tracker;
  if (!tracker.empty() && !SocketPath(tracker)) findings.push_back(AskTracker(folder, tracker));
  return findings;
}

}  // namespace hone::agent
