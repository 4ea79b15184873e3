// SPDX-License-Identifier: Apache-2.0
// The build worker: a child process that compiles candidates. If it crashes, hangs or runs out of memory, only the
// current candidate fails.
//
// The worker holds the shared side of the host lock while it compiles, so nothing is timed on this machine meanwhile.
// It stays alive from one candidate to the next, which keeps LLVM warm. build_pool.h starts, watches and replaces
// workers. Start with ServeBuilds.
#ifndef HONE_TUNER_BUILD_WORKER_H_
#define HONE_TUNER_BUILD_WORKER_H_

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"
#include "tuner/build_message.h"

namespace hone::tuner {

// Compiles or links in this process. Not thread-safe.
class Builder {
 public:
  // reproducers: folder for files that reproduce the failure of a pass (compiler/pass_runner.h); empty: none are
  // written.
  explicit Builder(std::string reproducers = "") : reproducers_(std::move(reproducers)) {}
  // A failure is a reply of kind kFailed.
  BuildReply Build(const BuildRequest& request);

 private:
  absl::StatusOr<BuildReply> Compile(const BuildRequest& request);
  // The object of a kernel's `prepare`. Many candidates share it, so it is kept.
  absl::StatusOr<std::string> Prepare(const ir::Func& prepare, const target::Target& target);

  const std::string reproducers_;
  std::map<std::string, std::string> prepares_;  // objects by target and name
};

// Answers requests from the socket until the other end is closed. Also returns after a failure of the linker, which may
// not run again in this process; the pool replaces the worker. Returns the exit code of the process: 1 if a request
// could not be decoded, else 0.
int ServeBuilds(int socket, const std::function<BuildReply(const BuildRequest&)>& build);

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUILD_WORKER_H_
