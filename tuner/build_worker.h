// SPDX-License-Identifier: Apache-2.0
// The child process that compiles: it may crash, hang or run out of memory, and only the one candidate suffers.
//
// Compiles while holding the shared side of the host lock, so that nothing is timed on this machine meanwhile. Keeps
// LLVM warm from one candidate to the next. build_pool.h starts, watches and replaces such processes.
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

// Compiles or links in this process. Of one thread.
class Builder {
 public:
  // reproducers: folder for what shows the failure of a pass again (compiler/pass_runner.h); empty: none.
  explicit Builder(std::string reproducers = "") : reproducers_(std::move(reproducers)) {}
  // Failures are in the reply.
  BuildReply Build(const BuildRequest& request);

 private:
  absl::StatusOr<BuildReply> Compile(const BuildRequest& request);
  // The object of a kernel's `prepare`, which many candidates have in common.
  absl::StatusOr<std::string> Prepare(const ir::Func& prepare, const target::Target& target);

  const std::string reproducers_;
  std::map<std::string, std::string> prepares_;  // objects by target and name
};

// Answers requests from the socket until the other end is gone, or linking has failed. Returns the exit code of the
// process.
int ServeBuilds(int socket, const std::function<BuildReply(const BuildRequest&)>& build);

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUILD_WORKER_H_
