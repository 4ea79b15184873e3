// SPDX-License-Identifier: Apache-2.0
// Viewers of a farm: each has a certificate of its own, and reads the tracker's stream of events.
#ifndef HONE_TESTS_BENCH_FARM_LOAD_VIEWERS_H_
#define HONE_TESTS_BENCH_FARM_LOAD_VIEWERS_H_

#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/farm/entrance.h"
#include "tests/unit/tracker/http/http_client.h"

namespace hone::farm {

class LoadViewers {
 public:
  // entrance: with TLS. url: the address of the tracker's HTTP server on this machine.
  LoadViewers(const Entrance& entrance, const std::string& url, int viewers);
  ~LoadViewers();

  // Milliseconds between the time stamp of an event and its arrival at a viewer, sorted; for all events that have a
  // time stamp.
  std::vector<double> TakeDelays();

 private:
  void Watch(tracker::HttpClient& client);

  std::list<tracker::HttpClient> clients_;
  std::mutex mutex_;
  std::vector<double> delays_;
  std::vector<std::thread> threads_;
};

}  // namespace hone::farm

#endif  // HONE_TESTS_BENCH_FARM_LOAD_VIEWERS_H_
