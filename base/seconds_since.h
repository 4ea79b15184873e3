// SPDX-License-Identifier: Apache-2.0
// Elapsed time by the steady clock. It needs only the C++ library, because drivers and the runtime use it.
#ifndef HONE_BASE_SECONDS_SINCE_H_
#define HONE_BASE_SECONDS_SINCE_H_

#include <chrono>

namespace hone {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace hone

#endif  // HONE_BASE_SECONDS_SINCE_H_
