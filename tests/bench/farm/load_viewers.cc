// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/farm/load_viewers.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "fmt/format.h"

namespace hone::farm {

LoadViewers::LoadViewers(const Entrance& entrance, const std::string& url, int viewers) {
  const int port = std::atoi(url.substr(url.rfind(':') + 1).c_str());
  for (int i = 0; i < viewers; ++i) {
    const TlsFiles files = entrance.FilesOf(Role::kClient, fmt::format("viewer{}", i));
    tracker::HttpClient& client = clients_.emplace_back(port, files);
    threads_.emplace_back([this, &client] { Watch(client); });
  }
}

LoadViewers::~LoadViewers() {
  for (tracker::HttpClient& client : clients_) client.Stop();
  for (std::thread& thread : threads_) thread.join();
}

void LoadViewers::Watch(tracker::HttpClient& client) {
  client.Send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  HONE_CHECK(client.ReceiveHead().status == 200);
  for (std::string line; client.ReceiveLine(line);) {
    const absl::Time now = absl::Now();
    if (line.rfind("data: ", 0) != 0) continue;
    const auto event = nlohmann::json::parse(line.substr(6), nullptr, false);
    const std::string looked = event.contains("overview") ? event["overview"].value("time", "") : "";
    absl::Time time;
    if (!absl::ParseTime(absl::RFC3339_full, looked, &time, nullptr)) continue;
    const std::lock_guard lock(mutex_);
    delays_.push_back(absl::ToDoubleMilliseconds(now - time));
  }
}

std::vector<double> LoadViewers::TakeDelays() {
  const std::lock_guard lock(mutex_);
  std::vector<double> delays = std::exchange(delays_, {});
  std::sort(delays.begin(), delays.end());
  return delays;
}

}  // namespace hone::farm
