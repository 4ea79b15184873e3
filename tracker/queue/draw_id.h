// SPDX-License-Identifier: Apache-2.0
// Ids that were never there before and that nobody guesses: of leases, so that nobody but the holder ends, extends or
// answers one; of jobs and batches, so that a farm that goes on from an older copy of its state makes none again.
#ifndef HONE_TRACKER_QUEUE_DRAW_ID_H_
#define HONE_TRACKER_QUEUE_DRAW_ID_H_

#include <functional>
#include <string>

namespace hone::tracker {

// A new id at every call: 128 random bits, as text. The shell draws from the system, simulations from their seed.
using DrawId = std::function<std::string()>;

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_DRAW_ID_H_
