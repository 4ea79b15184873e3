// SPDX-License-Identifier: Apache-2.0
// A session with a tracker, as bytes: calls one after another, each with the time that passes before it.
#ifndef HONE_TESTS_FUZZERS_SESSION_H_
#define HONE_TESTS_FUZZERS_SESSION_H_

#include <cstdint>
#include <string>

namespace hone::fuzzers {

enum class Call : uint8_t {
  kSynchronize,
  kSubmitJob,
  kLeaseJob,
  kReportProgress,
  kSubmitBatch,
  kWaitBatch,
  kCompleteJob,
  kCancelJob,
  kWatchJob,
  kAppendRecords,
  kQueryRecords,
  kCount,
};

// The first byte of a piece: the call in its low half, in its high half how many times 3 seconds pass before it. The
// request follows.
inline std::string PieceOf(Call call, const std::string& request, int pauses = 0) {
  return std::string(1, static_cast<char>(static_cast<int>(call) | pauses << 4)) + request;
}

}  // namespace hone::fuzzers

#endif  // HONE_TESTS_FUZZERS_SESSION_H_
