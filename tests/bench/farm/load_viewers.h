// SPDX-License-Identifier: Apache-2.0
// Viewers of a farm: each keeps the tracker's stream of events open and reads it.
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
  // url: address of a tracker on loopback, with its key.
  LoadViewers(const std::string& url, int viewers);
  ~LoadViewers();

  // Milliseconds between the time stamp of an event and its arrival at a viewer, sorted; for all events that have a
  // time stamp.
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
