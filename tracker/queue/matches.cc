// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/matches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace hone::tracker {
namespace {

// Conditions are stored with their job and read at every search for devices.
constexpr size_t kNeedsBytesMax = size_t{64} << 10;

bool HasLabel(const v1::DeviceState& device, const std::string& name, const std::string& value) {
  const auto label = device.labels().find(name);
  return label != device.labels().end() && label->second == value;
}

bool MatchesWord(const std::string& word, const std::string& agent_id, const v1::DeviceState& device) {
  if (word.empty()) return false;
  const size_t equals = word.find('=');
  if (equals != std::string::npos) return HasLabel(device, word.substr(0, equals), word.substr(equals + 1));
  return word == agent_id || word == NameOf(agent_id, device.device_id()) || device.labels().contains(word);
}

}  // namespace

std::string NameOf(const std::string& agent_id, const std::string& device_id) {
  return fmt::format("{}/{}", agent_id, device_id);
}

std::pair<std::string, std::string> SplitName(const std::string& name) {
  const size_t slash = name.find('/');
  return {name.substr(0, slash), name.substr(slash + 1)};
}

std::string LabelText(const std::string& name, const std::string& value) {
  return value.empty() ? name : fmt::format("{}={}", name, value);
}

absl::Status CheckRequirements(const v1::Requirements& requirements) {
  const size_t bytes = requirements.ByteSizeLong();
  if (bytes <= kNeedsBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the conditions for devices have {} bytes; the limit is {}", bytes, kNeedsBytesMax));
}

bool MatchesWords(std::string_view words, const std::string& agent_id, const v1::DeviceState& device) {
  const std::vector<std::string> each = absl::StrSplit(std::string(words), ',');
  return std::all_of(each.begin(), each.end(),
                     [&](const std::string& word) { return MatchesWord(word, agent_id, device); });
}

bool Matches(const v1::Requirements& requirements, const std::string& agent_id, const v1::DeviceState& device) {
  const auto& asked = requirements.devices();
  const auto meant = [&](const std::string& words) { return MatchesWords(words, agent_id, device); };
  if (!asked.empty() && std::none_of(asked.begin(), asked.end(), meant)) return false;
  const v1::DeviceFingerprint& fingerprint = device.fingerprint();
  if (!requirements.target().empty() && requirements.target() != device.target()) return false;
  if (!requirements.architecture().empty() && requirements.architecture() != fingerprint.architecture()) return false;
  if (!requirements.fingerprint_digest().empty() && requirements.fingerprint_digest() != fingerprint.digest())
    return false;
  if (requirements.threads() > device.threads()) return false;
  const auto& features = fingerprint.cpu_features();
  for (const std::string& feature : requirements.cpu_features()) {
    if (std::find(features.begin(), features.end(), feature) == features.end()) return false;
  }
  const auto& labels = requirements.labels();
  return std::all_of(labels.begin(), labels.end(),
                     [&](const auto& label) { return HasLabel(device, label.first, label.second); });
}

std::string Describe(const v1::Requirements& requirements) {
  std::vector<std::string> parts;
  if (!requirements.devices().empty()) parts.push_back(fmt::format("{}", fmt::join(requirements.devices(), " or ")));
  if (!requirements.target().empty()) parts.push_back(fmt::format("target '{}'", requirements.target()));
  if (!requirements.architecture().empty())
    parts.push_back(fmt::format("architecture {}", requirements.architecture()));
  constexpr int kListed = 3;
  if (requirements.cpu_features_size() > kListed) {
    parts.push_back(fmt::format("{} CPU features", requirements.cpu_features_size()));
  } else {
    for (const std::string& feature : requirements.cpu_features()) parts.push_back(fmt::format("feature {}", feature));
  }
  for (const auto& [name, value] : requirements.labels()) parts.push_back("label " + LabelText(name, value));
  if (!requirements.fingerprint_digest().empty()) {
    parts.push_back(fmt::format("fingerprint {}", requirements.fingerprint_digest().substr(0, 12)));
  }
  if (requirements.threads() > 1) parts.push_back(fmt::format("{} threads", requirements.threads()));
  return parts.empty() ? "any device" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace hone::tracker
