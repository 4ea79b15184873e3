// What the holder of a lease proves its right with. Nobody guesses it, so nobody else ends, extends or answers it.
#ifndef HONE_TRACKER_QUEUE_LEASE_ID_H_
#define HONE_TRACKER_QUEUE_LEASE_ID_H_

#include <functional>
#include <string>

namespace hone::tracker {

// A new id at every call: 128 random bits, as text. The shell draws from the system, simulations from their seed.
using DrawLeaseId = std::function<std::string()>;

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_LEASE_ID_H_
