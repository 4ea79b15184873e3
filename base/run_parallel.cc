// SPDX-License-Identifier: Apache-2.0
#include "base/run_parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "base/status.h"

namespace hone {

absl::Status RunParallel(size_t count, int threads, const std::function<absl::Status(size_t)>& work) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::atomic<size_t> next{0};
  std::vector<absl::Status> results(count);
  const auto run = [&] {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) results[i] = work(i);
  };
  {
    std::vector<std::jthread> workers;
    for (size_t i = 1; i < std::min(count, static_cast<size_t>(threads)); ++i) {
      try {
        workers.emplace_back(run);
      } catch (const std::system_error&) {
        break;  // the system grants no more threads: the existing ones do the work
      }
    }
    run();
  }
  for (const absl::Status& status : results) HONE_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace hone
