// What one identity may take of a farm, so that none takes it all: the whole table. Who reaches a limit is answered
// RESOURCE_EXHAUSTED, with the limit and what to do. Limits of connections and messages: transport/transport.cc.
#ifndef HONE_TRACKER_QUEUE_QUOTAS_H_
#define HONE_TRACKER_QUEUE_QUOTAS_H_

#include <cstdint>

namespace hone::tracker {

struct Quotas {
  int open_jobs = 100;                          // of one submitter
  int leased_jobs = 16;                         // at a time, by all tuners of one name
  int open_batches = 64;                        // of one job
  int64_t open_batch_bytes = int64_t{1} << 30;  // of one job: what its open batches weigh in the tracker's memory
  // A tuner at full speed makes some ten calls a second, and compiling asks for each kernel of a model at once.
  double calls_per_second = 200;
  double calls_at_once = 1000;
};

inline constexpr Quotas kQuotas;

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_QUOTAS_H_
