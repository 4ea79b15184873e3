// SPDX-License-Identifier: Apache-2.0
#include "device_agent/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "device_agent/doctor/driver_checks.h"
#include "device_agent/doctor/identity_checks.h"
#include "device_agent/doctor/machine_checks.h"

namespace hone::agent {
namespace {

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "good";
    case Verdict::kNote:
      return "note";
    case Verdict::kBad:
      return "bad";
  }
  return "";
}

}  // namespace

std::vector<Finding> Examine(const DoctorOptions& options) {
  std::vector<Finding> findings = CheckMachine(options.identity.string());
  for (const std::vector<Finding>& more :
       {CheckDrivers(), CheckIdentity(options.identity, options.tracker, options.renews_certificate)}) {
    findings.insert(findings.end(), more.begin(), more.end());
  }
  return findings;
}

bool IsAllFine(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& f) { return f.verdict == Verdict::kBad; });
}

std::string FindingsAsText(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<4}  {:<14}  {}\n", VerdictName(finding.verdict), finding.check, finding.what);
    if (!finding.fix.empty()) text += fmt::format("{:22}fix: {}\n", "", finding.fix);
  }
  return text;
}

std::string FindingsAsJson(const std::vector<Finding>& findings) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    checks.push_back({{"check", finding.check},
                      {"verdict", VerdictName(finding.verdict)},
                      {"what", finding.what},
                      {"mend", finding.fix}});
  }
  const nlohmann::ordered_json document = {{"fine", IsAllFine(findings)}, {"checks", std::move(checks)}};
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hone::agent
