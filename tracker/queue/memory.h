// SPDX-License-Identifier: Apache-2.0
// What a message weighs in memory: many small ones are far more than their bytes on the way.
#ifndef HONE_TRACKER_QUEUE_MEMORY_H_
#define HONE_TRACKER_QUEUE_MEMORY_H_

#include <cstddef>

#include "hone/v1/job.pb.h"

namespace hone::tracker {

inline size_t MemoryOf(const google::protobuf::Message& message) {
#ifdef __SANITIZE_THREAD__
  // There maps have members that the library does not know, which is built without the sanitizer (map_field.h), so that
  // it must not look into them.
  return message.ByteSizeLong();
#else
  return message.SpaceUsedLong();
#endif
}

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_MEMORY_H_
