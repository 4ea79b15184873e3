// Candidates are compiled in child processes: a crash or a hang of the compiler is one candidate's failure, never the tuner's.
//
// A worker is this program started again with --build-worker. It takes a batch without artifact (workload, target,
// schedules), compiles every candidate and a reference kernel, and answers with one shared object for all. Start at BuildWorker::Build
// (the tuner's side) and BuildWorkerMain (the process itself).
#ifndef HONE_TUNER_BUILD_WORKER_H_
#define HONE_TUNER_BUILD_WORKER_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/measure.pb.h"

namespace hone::tuner {

struct BuildResult {
  v1::Batch batch;                              // the candidates that compiled, and the artifact; none: no artifact
  std::vector<v1::CandidateOutcome> failures;   // the others
};

// One child process, started when it is first needed and again whenever it died. Used by one thread at a time.
class BuildWorker {
 public:
  explicit BuildWorker(absl::Duration candidate_limit) : candidate_limit_(candidate_limit) {}
  ~BuildWorker() { Stop(); }
  BuildWorker(const BuildWorker&) = delete;
  BuildWorker& operator=(const BuildWorker&) = delete;

  // The batch with kernels and artifact filled in. Unavailable: no process can be started; Internal: the reference
  // kernel does not compile.
  absl::StatusOr<BuildResult> Build(v1::Batch batch);

 private:
  absl::Status Start();
  void Stop();
  // One try. The candidate that ended the process (killed it, or took too long) is named by index; -1: none did.
  absl::StatusOr<bool> TryBuild(const v1::Batch& batch, BuildResult* result, int* culprit, bool* timed_out);

  const absl::Duration candidate_limit_;
  pid_t pid_ = -1;
  int channel_ = -1;
};

// The worker process: serves batches from `channel` until it is closed. Returns the exit status.
int BuildWorkerMain(int channel);

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUILD_WORKER_H_
