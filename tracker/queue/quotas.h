// SPDX-License-Identifier: Apache-2.0
// What one identity may take of a farm, so that none takes it all: the whole table. Who reaches a limit is answered
// RESOURCE_EXHAUSTED, with the limit and what to do. Limits of connections and messages: transport/transport.cc.
#ifndef HONE_TRACKER_QUEUE_QUOTAS_H_
#define HONE_TRACKER_QUEUE_QUOTAS_H_

#include <cstdint>

namespace hone::tracker {

struct Quotas {
  int open_jobs = 100;  // of one submitter
  // Of one submitter: what his open jobs weigh in the tracker's memory, where all are again after every start. A job of
  // the largest models has one or two MiB, and a night's queue of a lab fits many times.
  int64_t open_job_bytes = int64_t{256} << 20;
  int leased_jobs = 16;  // at a time, by all tuners of one name
  // Of one job. As many may be asked for at once, and as many calls may wait for some.
  int open_batches = 64;
  // Finished ones of one job that nobody has acknowledged: the oldest are forgotten. A tuner acknowledges each, but for
  // those calls that are lost on the way.
  int finished_batches = 1024;
  int64_t open_batch_bytes = int64_t{1} << 30;  // of one job: memory of the tracker for its batches and results
  int64_t open_batch_bytes_of_tuner = int64_t{2} << 30;  // of all jobs that tuners of one name hold
  // Lists of records that are being sent, of one identity and of all: each holds a thread and up to 16 MiB of records
  // until it is read. One command has one, and a server that compiles many models some.
  int streams = 8;
  int streams_of_all = 48;
  int stream_waits = 200;  // of one identity, for such a list: each holds a thread, and compiling asks from all cores
  int watches = 200;       // of one identity that wait for news of a job. One command has one, and may watch 100 jobs
  // A tuner at full speed makes some ten calls a second, and compiling asks for each kernel of a model at once.
  double calls_per_second = 200;
  double calls_at_once = 1000;
};

inline constexpr Quotas kQuotas;

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_QUOTAS_H_
