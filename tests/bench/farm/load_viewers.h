// SPDX-License-Identifier: Apache-2.0
// People who watch a farm: each has the tracker's stream of events open, and takes what comes.
#ifndef HONE_TESTS_BENCH_FARM_LOAD_VIEWERS_H_
#define HONE_TESTS_BENCH_FARM_LOAD_VIEWERS_H_

#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/tracker/http/http_client.h"

namespace hone::farm {

class LoadViewers {
 public:
  // url: of a tracker on loopback, with its key.
  LoadViewers(const std::string& url, int viewers);
  ~LoadViewers();

  // Milliseconds from when the tracker looked to when a viewer had it, of every event that said when; sorted.
  std::vector<double> TakeDelays();

 private:
  void Watch(tracker::HttpClient& client, const std::string& key);

  std::list<tracker::HttpClient> clients_;
  std::mutex mutex_;
  std::vector<double> delays_;
  std::vector<std::thread> threads_;
};

}  // namespace hone::farm

#endif  // HONE_TESTS_BENCH_FARM_LOAD_VIEWERS_H_
