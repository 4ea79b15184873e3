// The child process that compiles: it may crash, hang or run out of memory, and only the one candidate suffers.
//
// Compiles while holding the shared side of the host lock, so that nothing is timed on this machine meanwhile. Keeps
// LLVM warm from one candidate to the next. build_pool.h starts, watches and replaces such processes.
#ifndef HONE_TUNER_BUILD_WORKER_H_
#define HONE_TUNER_BUILD_WORKER_H_

#include <functional>
#include <string>

#include "tuner/build_message.h"

namespace hone::tuner {

// Compiles or links in this process; failures are in the reply. reproducers: folder for what shows the failure of a
// pass again (compiler/pass_runner.h); empty: none.
BuildReply Build(const BuildRequest& request, const std::string& reproducers = "");

// Answers requests from the socket until the other end is gone. Returns the exit code of the process.
int ServeBuilds(int socket, const std::function<BuildReply(const BuildRequest&)>& build);

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUILD_WORKER_H_
