// SPDX-License-Identifier: Apache-2.0
// A held call (long poll): a call whose answer waits for an event or a deadline, without holding a thread.
#ifndef HONE_TRACKER_HELD_CALL_H_
#define HONE_TRACKER_HELD_CALL_H_

#include <functional>
#include <future>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone::tracker {

// Says whether the caller is still connected and allowed. Called twice a second, under locks, so it must not wait for
// anything.
using Present = std::function<bool()>;

// Takes the answer of a call. Called once, on any thread. Must not wait.
template <typename Response>
using Done = std::function<void(absl::StatusOr<Response>)>;

// Starts `call`, which takes a Done, and blocks until the answer comes. For threads that may wait, such as those that
// then write the audit log.
template <typename Response, typename Call>
absl::StatusOr<Response> Await(const Call& call) {
  std::promise<absl::StatusOr<Response>> promise;
  call([&promise](absl::StatusOr<Response> result) { promise.set_value(std::move(result)); });
  return promise.get_future().get();
}

template <typename Request, typename Response>
struct HeldCall {
  Request request;
  Response nothing;  // the answer at the deadline
  absl::Time until;  // the deadline
  Present present;
  Done<Response> done;
  std::string who = {};  // the identity whose calls are counted together; "": not counted
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HELD_CALL_H_
