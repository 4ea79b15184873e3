// SPDX-License-Identifier: Apache-2.0
// What a tuner and its build workers say to each other, as bytes in frames (base/frame.h).
//
// Private to one version of one program: both ends are the same binary, so the encoding needs no compatibility. One
// request, then up to two answers: kStarted when the worker begins (it may have waited for the host lock), then
// the result.
#ifndef HONE_TUNER_BUILD_MESSAGE_H_
#define HONE_TUNER_BUILD_MESSAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kernel_interface.h"

namespace hone::tuner {

enum class BuildFailure : int64_t { kScheduleIllegal, kCompileError, kCompileTimeout };

// Where in an artifact the code of one kernel is; both 0: all over it.
struct CodeRange {
  int64_t offset = 0, bytes = 0;
};

struct BuildRequest {
  enum class Kind : int64_t { kCompile, kCompileReference, kLink };
  Kind kind = Kind::kCompile;
  std::string workload, target, schedule, name;  // to compile; to link: the target
  std::vector<std::string> objects;              // to link
};

struct BuildReply {
  // kNotTried: no worker began with it, which says nothing of what was to be built. The pool's, not in a message.
  enum class Kind : int64_t { kStarted, kDone, kFailed, kNotTried };
  Kind kind = Kind::kDone;
  std::string bytes;              // the object, or what all objects were linked to
  std::string prepare;            // object of the kernel's `prepare` where it is one of its own, else empty
  std::vector<CodeRange> ranges;  // of each object in it
  KernelInterface kernel;         // of what was compiled; without a name where nothing was
  std::string drawback;           // why a candidate that was compiled is not worth being launched; empty: nothing
  BuildFailure failure = BuildFailure::kCompileError;
  std::string text;    // why it failed
  double seconds = 0;  // that the worker was busy; the pool's, not in the message
};

std::string Encode(const BuildRequest& request);
std::string Encode(const BuildReply& reply);
// Empty where the bytes are no such message.
std::optional<BuildRequest> DecodeRequest(std::string_view bytes);
std::optional<BuildReply> DecodeReply(std::string_view bytes);

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUILD_MESSAGE_H_
