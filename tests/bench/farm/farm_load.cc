// SPDX-License-Identifier: Apache-2.0
// hone-farm-load: agents and tuners that only exchange messages, to measure the load that a tracker can carry. Starts
// the tracker itself, on a socket or with TLS and with new databases. Prints one JSON document.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/resource_limit.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "hone/v1/record.grpc.pb.h"
#include "tests/bench/farm/entrance.h"
#include "tests/bench/farm/load_agents.h"
#include "tests/bench/farm/load_tuners.h"
#include "tests/bench/farm/load_viewers.h"
#include "transport/transport.h"

namespace hone::farm {
namespace {

struct Options {
  std::string tracker;
  int agents = 200, tuners = 4, viewers = 0, candidates = 16, query_rows = 100'000;
  double seconds = 20, outcomes = 0;
  bool query = false, tls = false;
};

// A tracker of this program's own, in a folder that is deleted with it.
class Tracker {
 public:
  Tracker(const std::string& binary, bool tls) : entrance_(folder_.path(), tls) {
    const std::string url = folder_ / "url", records = folder_ / "records.db", port = folder_ / "port",
                      pki = entrance_.pki_folder();
    pid_ = fork();
    HONE_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      execl(binary.c_str(), binary.c_str(), "--listen", entrance_.listen().c_str(), "--records", records.c_str(),
            "--port-file", port.c_str(), "--die-with-parent", "--http", "127.0.0.1:0", "--http-file", url.c_str(),
            tls ? "--pki" : nullptr, pki.c_str(), nullptr);
      _exit(127);
    }
    while (!std::filesystem::exists(port)) {
      HONE_CHECK(waitpid(pid_, nullptr, WNOHANG) == 0);
      usleep(10'000);
    }
    std::ifstream file(port);
    std::string address;
    file >> address;
    entrance_.SetAddress(address);
    std::ifstream(url) >> url_;
  }
  ~Tracker() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  const Entrance& entrance() const { return entrance_; }
  const std::string& url() const { return url_; }  // of its HTTP server

  double CpuSeconds() const {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid_));
    std::string text;
    std::getline(stat, text);
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    int64_t user = 0, system = 0;
    fields >> user >> system;
    return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  double Status(const std::string& name) const {  // a value of /proc/PID/status: kB, or a count
    std::ifstream status(fmt::format("/proc/{}/status", pid_));
    for (std::string line; std::getline(status, line);) {
      if (line.rfind(name + ":", 0) == 0) return std::stod(line.substr(name.size() + 1));
    }
    return 0;
  }

 private:
  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  Entrance entrance_;
  std::string url_;
  pid_t pid_ = -1;
};

// Queries all records, page after page, in a loop, and counts the queries that were answered completely.
class Asker {
 public:
  Asker(const Entrance& entrance, int rows) : thread_([this, &entrance, rows] { Run(entrance, rows); }) {}
  ~Asker() { Join(); }
  void Join() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int64_t rows() const { return rows_; }

 private:
  void Run(const Entrance& entrance, int rows) {
    const auto stub = v1::RecordService::NewStub(entrance.Open(Role::kClient, "asker"));
    v1::QueryRecordsRequest request;
    while (!stopping_) {
      request.set_limit(rows);
      v1::QueryRecordsResponse response;
      grpc::ClientContext context;
      HONE_CHECK(stub->Query(&context, request, &response).ok());
      rows_ += response.records_size();
      request.set_after_row(response.more() ? response.records().rbegin()->row() : 0);
    }
  }
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> rows_ = 0;
  std::thread thread_;
};

double Quantile(const std::vector<double>& sorted, double share) {
  return sorted.empty() ? 0 : sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

// Returns the counts of an interval of this many seconds.
nlohmann::ordered_json Watch(const Tracker& tracker, Tally& tally, double seconds, const std::string& what) {
  tally.Reset();
  const double cpu = tracker.CpuSeconds();
  const Clock::time_point begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
  const std::vector<double> latencies = tally.TakeLatencies();
  return {{"what", what},
          {"seconds", passed},
          {"outcomes_per_second", static_cast<double>(tally.acknowledged()) / passed},
          {"leases", latencies.size()},
          {"lease_ms_p50", Quantile(latencies, 0.5)},
          {"lease_ms_p99", Quantile(latencies, 0.99)},
          {"lease_ms_max", Quantile(latencies, 1)},
          {"failed_calls", tally.failed()},
          {"tracker_cores", (tracker.CpuSeconds() - cpu) / passed},
          {"tracker_mb", tracker.Status("VmRSS") / 1024},
          {"tracker_threads", tracker.Status("Threads")}};
}

int Run(const Options& options) {
  RaiseOpenFileLimit();
  Tally tally;
  const Tracker tracker(options.tracker, options.tls);
  const LoadAgents agents(tracker.entrance(), options.agents, &tally);
  while (agents.registered() < options.agents) {
    if (tally.failed() > 100 * options.agents) {
      fmt::print(stderr, "the tracker admits nobody: {}\n", tally.last_failure());
      return 1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  nlohmann::ordered_json document = {{"agents", options.agents}, {"parts", nlohmann::ordered_json::array()}};
  if (options.outcomes == 0) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    document["parts"].push_back(Watch(tracker, tally, options.seconds, "idle"));
  } else {
    const LoadTuners tuners(tracker.entrance(), options.tuners, options.outcomes, options.candidates, &tally);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    document["asked_outcomes_per_second"] = options.outcomes;
    document["parts"].push_back(Watch(tracker, tally, options.seconds, "load"));
    if (options.query) {
      Asker asker(tracker.entrance(), options.query_rows);
      nlohmann::ordered_json part = Watch(tracker, tally, options.seconds, "load and a query of the records");
      asker.Join();
      part["queried_rows_per_second"] = static_cast<double>(asker.rows()) / options.seconds;
      document["parts"].push_back(part);
    }
    if (options.viewers > 0) {
      fmt::print(stderr, "watch it at {}\n", tracker.url());
      LoadViewers viewers(tracker.entrance(), tracker.url(), options.viewers);
      std::this_thread::sleep_for(std::chrono::seconds(2));
      viewers.TakeDelays();
      nlohmann::ordered_json part = Watch(tracker, tally, options.seconds, "load, watched");
      const std::vector<double> delays = viewers.TakeDelays();
      part["events"] = delays.size();
      part["event_ms_p50"] = Quantile(delays, 0.5);
      part["event_ms_max"] = Quantile(delays, 1);
      document["parts"].push_back(part);
    }
    document["batches_behind"] = tuners.behind();
  }
  document["last_failure"] = tally.last_failure();
  fmt::print("{}\n", document.dump(2));
  return 0;
}

int Main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);  // TLS may answer on a connection that was just ended
  Options options;
  options.tracker = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "hone-tracker";
  CLI::App app("Agents and tuners that do nothing but talk to a tracker.", "hone-farm-load");
  app.add_option("--tracker", options.tracker, "the program");
  app.add_option("--agents", options.agents, "each with a connection of its own")->capture_default_str();
  app.add_option("--outcomes", options.outcomes, "a second, to be submitted; 0: all are idle")->capture_default_str();
  app.add_option("--tuners", options.tuners)->capture_default_str();
  app.add_option("--candidates", options.candidates, "in a batch")->capture_default_str();
  app.add_option("--seconds", options.seconds, "of each part")->capture_default_str();
  app.add_flag("--tls", options.tls, "mutual TLS, with a certificate for each; else a socket");
  app.add_flag("--query", options.query, "a second part, in which the records are queried all the time");
  app.add_option("--query-rows", options.query_rows, "asked for at a time")->capture_default_str();
  app.add_option("--viewers", options.viewers, "a part in which so many watch the events; needs --tls")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (options.viewers > 0 && (!options.tls || options.outcomes == 0)) {
    fmt::print(stderr, "--viewers needs --outcomes and --tls\n");
    return 2;
  }
  return Run(options);
}

}  // namespace
}  // namespace hone::farm

int main(int argc, char** argv) { return hone::farm::Main(argc, argv); }
