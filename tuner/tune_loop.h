// Tuning one job: the whole loop, from a lease to its end. Read TuneLoop::Run in tune_loop.cc top to bottom.
//
// Stateless: what must last is in the records and in the job at the tracker. A tuner that dies is followed by another,
// which finds the outcomes of this one in the records. Measuring is the farm's work, compiling that of build workers;
// the loop decides.
#ifndef HONE_TUNER_TUNE_LOOP_H_
#define HONE_TUNER_TUNE_LOOP_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/tuner.pb.h"

namespace hone::tuner {

struct TuneOptions {
  int build_workers = 0;  // 0: one per CPU
  std::string address;    // of the tracker, for messages
};

// Tunes the leased job until its budget is spent, nothing is left to gain, or it is cancelled; then completes it.
// Aborted: the lease is lost (the tracker was restarted, say) and somebody may lease the job again. Other errors end
// the job as failed.
absl::Status TuneJob(std::shared_ptr<grpc::Channel> channel, const v1::LeaseJobResponse& leased,
                     const TuneOptions& options);

}  // namespace hone::tuner

#endif  // HONE_TUNER_TUNE_LOOP_H_
