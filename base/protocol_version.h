// SPDX-License-Identifier: Apache-2.0
// The versions of the protocol (proto/hone/v1) that this program speaks, and the error for a program that speaks
// another one. Start at CheckProtocol.
//
// Fields and calls are added without a new version (docs/howto/change-the-wire.md). A change that an earlier program
// would misunderstand needs a new version. Agents and tuners send their version in a message. Every program sends it in
// the header of each call ("user-agent: hone-protocol/1 ...").
#ifndef HONE_BASE_PROTOCOL_VERSION_H_
#define HONE_BASE_PROTOCOL_VERSION_H_

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hone {

inline constexpr int kProtocolVersion = 1;
inline constexpr int kProtocolVersionMin = 1;  // the oldest version that a tracker still answers
inline constexpr std::string_view kProtocolPrefix = "hone-protocol/";  // precedes the version in the user-agent header

// Called by a tracker when a program introduces itself. version: the program's. who: its kind and name, such as
// "agent 'board'". kFailedPrecondition: the tracker does not speak that version; the text says which side to update.
inline absl::Status CheckProtocol(int version, std::string_view who) {
  if (version >= kProtocolVersionMin && version <= kProtocolVersion) return absl::OkStatus();
  const bool newer = version > kProtocolVersion;
  return absl::FailedPreconditionError(fmt::format(
      "{} uses protocol version {}, but this tracker supports versions {} to {}; update {}", who, version,
      kProtocolVersionMin, kProtocolVersion,
      newer ? "the tracker first" : fmt::format("the {} to the version of the tracker", who.substr(0, who.find(' ')))));
}

// The version in the user-agent header of a call. A header without the word means version 1: the first programs did not
// send it.
inline int ProtocolVersionOf(std::string_view user_agent) {
  const size_t word = user_agent.find(kProtocolPrefix);
  if (word == std::string_view::npos) return 1;
  return std::atoi(std::string(user_agent.substr(word + kProtocolPrefix.size(), 8)).c_str());
}

}  // namespace hone

#endif  // HONE_BASE_PROTOCOL_VERSION_H_
