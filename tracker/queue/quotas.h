// SPDX-License-Identifier: Apache-2.0
// The quotas of one identity (a user, tuner or agent name), so that none can use up the farm. A call that exceeds one
// fails with RESOURCE_EXHAUSTED; the text names the limit and what to do. Not here: limits of connections and messages
// (transport/transport.cc).
#ifndef HONE_TRACKER_QUEUE_QUOTAS_H_
#define HONE_TRACKER_QUEUE_QUOTAS_H_

#include <cstdint>

namespace hone::tracker {

struct Quotas {
  int open_jobs = 100;  // open jobs of one submitter
  // Memory of the tracker for the open jobs of one submitter; all open jobs are in memory. A job of the largest models
  // has one or two MiB, so a night's queue of a lab fits many times.
  int64_t open_job_bytes = int64_t{256} << 20;
  int leased_jobs = 16;  // jobs that all tuners of one name hold at a time
  // Open batches of one job. WaitBatch takes as many ids in one call, and as many of its calls may wait.
  int open_batches = 64;
  // Finished batches of one job that were not acknowledged; the oldest are forgotten first. A tuner acknowledges each
  // batch, so only batches whose acknowledgement was lost remain.
  int finished_batches = 1024;
  int64_t open_batch_bytes = int64_t{1} << 30;           // memory of the tracker for batches and results of one job
  int64_t open_batch_bytes_of_tuner = int64_t{2} << 30;  // the same for all jobs that tuners of one name hold
  // Open streams of records: of one identity, and of all. Each holds a thread and up to 16 MiB of records until its
  // client reads them. One command has one stream; a server that compiles many models has several.
  int streams = 8;
  int streams_total = 48;
  int stream_waits = 200;  // calls of one identity that wait for a stream, a thread each; a compile asks from all cores
  int watches = 200;       // calls of one identity that wait for events of a job; a command has one per job it watches
  // The share of the store of files that one identity's files may have, of those that may not be deleted now. A full
  // store then needs two identities, and the files of both are deleted in a day or when their jobs end.
  double file_share = 0.5;
  // Calls of one identity: the average rate, and the burst. A tuner at full speed makes some ten calls a second; a
  // compile makes one for each kernel of a model at once.
  double calls_per_second = 200;
  double calls_burst = 1000;
};

inline constexpr Quotas kQuotas;

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_QUOTAS_H_
