// SPDX-License-Identifier: Apache-2.0
// Which versions of the conversation (proto/hone/v1) this program speaks, and what one that speaks another is told.
//
// Fields and calls are added without a new version (docs/howto/change-the-wire.md); a new one is for what an earlier
// program would misunderstand. Agents and tuners say theirs in a message, and every program in the name that its calls
// carry ("user-agent: hone-protocol/1 ..."). Start at CheckProtocol.
#ifndef HONE_BASE_PROTOCOL_VERSION_H_
#define HONE_BASE_PROTOCOL_VERSION_H_

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hone {

inline constexpr int kProtocolVersion = 1;
inline constexpr int kOldestProtocolVersion = 1;  // that a tracker still answers
inline constexpr std::string_view kProtocolWord = "hone-protocol/";

// For a tracker. who: "agent 'board'". kFailedPrecondition: it cannot be understood; the text says which side to
// update.
inline absl::Status CheckProtocol(int version, std::string_view who) {
  if (version >= kOldestProtocolVersion && version <= kProtocolVersion) return absl::OkStatus();
  const bool newer = version > kProtocolVersion;
  return absl::FailedPreconditionError(
      fmt::format("{} speaks protocol version {}, and this tracker {} to {}: update {}", who, version,
                  kOldestProtocolVersion, kProtocolVersion,
                  newer ? "the tracker, which goes first"
                        : fmt::format("the {}, to the version of the tracker", who.substr(0, who.find(' ')))));
}

// The version in the name that a call carries; 1 where it says none, as programs did before there was the word.
inline int ProtocolOf(std::string_view user_agent) {
  const size_t word = user_agent.find(kProtocolWord);
  if (word == std::string_view::npos) return 1;
  return std::atoi(std::string(user_agent.substr(word + kProtocolWord.size(), 8)).c_str());
}

}  // namespace hone

#endif  // HONE_BASE_PROTOCOL_VERSION_H_
