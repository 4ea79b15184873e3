// SPDX-License-Identifier: Apache-2.0
// The memory that a message takes, which is far more than its encoded size if it holds many small messages.
#ifndef HONE_TRACKER_QUEUE_MEMORY_H_
#define HONE_TRACKER_QUEUE_MEMORY_H_

#include <cstddef>

#include "hone/v1/job.pb.h"

namespace hone::tracker {

inline size_t MemoryOf(const google::protobuf::Message& message) {
#ifdef __SANITIZE_THREAD__
  // With the sanitizer, the headers declare maps with members that the library, built without it, lacks (map_field.h).
  // SpaceUsedLong reads these maps and would read the wrong bytes.
  return message.ByteSizeLong();
#else
  return message.SpaceUsedLong();
#endif
}

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_MEMORY_H_
