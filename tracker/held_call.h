// SPDX-License-Identifier: Apache-2.0
// A call that waits for something to happen: who calls, what it gets when nothing does, and until when.
#ifndef HONE_TRACKER_HELD_CALL_H_
#define HONE_TRACKER_HELD_CALL_H_

#include <functional>
#include <future>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone::tracker {

// Says whether the caller is still there, and welcome. Asked twice a second, under locks: it must not wait for
// anything.
using Present = std::function<bool()>;

// Takes the answer of a call, once, on any thread. Must not wait.
template <typename Response>
using Done = std::function<void(absl::StatusOr<Response>)>;

// The answer of `call`, which takes a Done, for a thread that may wait: one that goes on to write the audit log, say.
template <typename Response, typename Call>
absl::StatusOr<Response> Await(const Call& call) {
  std::promise<absl::StatusOr<Response>> promise;
  call([&promise](absl::StatusOr<Response> result) { promise.set_value(std::move(result)); });
  return promise.get_future().get();
}

template <typename Request, typename Response>
struct HeldCall {
  Request request;
  Response nothing;  // the answer when time is up
  absl::Time until;
  Present present;
  Done<Response> done;
  std::string who = {};  // whose calls are counted together
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HELD_CALL_H_
