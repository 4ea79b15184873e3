// SPDX-License-Identifier: Apache-2.0
// The messages between a tuner and its build workers, as bytes in frames (base/frame.h).
//
// Both ends are the same binary, so the encoding needs no compatibility between versions. A request gets up to two
// replies: kStarted when the worker begins, which may be after waiting for the host lock, then the result.
#ifndef HONE_TUNER_BUILD_MESSAGE_H_
#define HONE_TUNER_BUILD_MESSAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/failure_kind.h"
#include "base/kernel_interface.h"

namespace hone::tuner {

// The bytes of an artifact that are the code of one kernel; both 0: the whole artifact.
struct CodeRange {
  int64_t offset = 0, bytes = 0;
};

// A request to compile a candidate, to compile the reference kernel, or to link objects.
struct BuildRequest {
  enum class Kind : int64_t { kCompile, kCompileReference, kLink };
  Kind kind = Kind::kCompile;
  std::string workload, target, schedule, name;  // texts, and the kernel's name; linking uses the target only
  std::vector<std::string> objects;              // objects to link; empty when compiling
};

struct BuildReply {
  // kNotTried: no worker began with the request, so nothing is known about the candidate. Only the pool sets it; it is
  // in no message.
  enum class Kind : int64_t { kStarted, kDone, kFailed, kNotTried };
  Kind kind = Kind::kDone;
  std::string bytes;              // the compiled object, or the linked artifact
  std::string prepare;            // separate object of the kernel's `prepare`; empty: there is none
  std::vector<CodeRange> ranges;  // linking: the range of each object in the artifact, in the request's order
  KernelInterface kernel;         // of the compiled kernel; without a name after linking or a failure
  std::string drawback;           // why a compiled candidate is not worth launching; empty: no reason
  FailureKind failure = FailureKind::kCompileError;  // kScheduleIllegal, kCompileError or kCompileTimeout
  std::string text;                                  // why it failed or was not tried
  double seconds = 0;  // that the worker was busy; the pool sets it, it is not in the message
};

std::string Encode(const BuildRequest& request);
std::string Encode(const BuildReply& reply);
// nullopt if the bytes are not such a message.
std::optional<BuildRequest> DecodeRequest(std::string_view bytes);
std::optional<BuildReply> DecodeReply(std::string_view bytes);

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUILD_MESSAGE_H_
