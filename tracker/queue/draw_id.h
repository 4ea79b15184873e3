// SPDX-License-Identifier: Apache-2.0
// Unique ids that cannot be guessed. Only the holder of a lease knows its id and can end, extend or answer it. Ids of
// jobs and batches are random as well, so that a tracker that runs from an older backup gives no id out again.
#ifndef HONE_TRACKER_QUEUE_DRAW_ID_H_
#define HONE_TRACKER_QUEUE_DRAW_ID_H_

#include <functional>
#include <string>

namespace hone::tracker {

// Returns a new id at every call: 128 random bits, as text. The shell uses the system's generator, simulations use
// their seed.
using DrawId = std::function<std::string()>;

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_DRAW_ID_H_
