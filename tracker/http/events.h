// SPDX-License-Identifier: Apache-2.0
// One stream of what changes in the farm, for everybody who watches it: jobs, devices and counts, as server-sent
// events.
//
// Changes are gathered and told at most four times a second, and each event is built once, however many watch; while
// nobody does, nobody looks. Who was away for a moment gets what he missed; who was away for longer, comes first, or
// left nobody behind who watched, is told to ask anew ("reset"). A look never takes more than a tenth of the time.
// docs/API.md describes the events. Safe from any thread. Start at Subscribe; Turn is what its thread does.
#ifndef HONE_TRACKER_HTTP_EVENTS_H_
#define HONE_TRACKER_HTTP_EVENTS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "tracker/held_call.h"
#include "tracker/http/exchange.h"
#include "tracker/http/json.h"
#include "tracker/shell.h"

namespace hone::tracker {

// The newest events, for who was away. Not thread-safe.
class EventRing {
 public:
  // Of all events together; the newest is kept whatever it has. A busy farm's minute is far below.
  static constexpr size_t kMostBytes = size_t{32} << 20;
  // boot: of this start of the tracker: numbers of another one mean nothing. most: how many are kept.
  EventRing(std::string boot, size_t most) : boot_(std::move(boot)), most_(most) {}

  Chunk Add(std::string_view name, const Json& data);
  // Whoever comes with an id that was given until now is to ask all anew.
  void BeginAnew();
  // What comes after the event of that id, or that all is to be asked anew.
  std::vector<Chunk> After(std::string_view last_id) const;

 private:
  std::string IdOf(int64_t number) const;

  const std::string boot_;
  const size_t most_;
  size_t bytes_ = 0;
  int64_t last_ = 0;  // number of the newest
  std::deque<Chunk> chunks_;
};

// What differs from what was told before, by name. Not thread-safe.
class Differences {
 public:
  // Takes how all things are now, by name. Fields in `fleeting`, which are never still, make no difference.
  // Returns {"changed": [...], "gone": [names]}, or null where all is as it was.
  Json Take(const std::map<std::string, Json>& now, const std::vector<std::string>& fleeting);
  // Nothing is told of that one any more, not even that it is gone; when it comes again, it is told.
  void Forget(const std::string& name) { told_.erase(name); }

 private:
  std::map<std::string, std::string> told_;
};

class EventFeed {
 public:
  // The system's clock may be set back; what is due must not wait for it.
  using SteadyTime = std::chrono::steady_clock::time_point;
  // Streams of one identity: a person's pages and scripts, but not all that there may be.
  static constexpr int kMostOfOne = 32;

  // shell and records must outlive it. It has no thread until Start.
  EventFeed(Shell* shell, std::filesystem::path records);
  ~EventFeed();
  void Start();

  // who: name of an identity, "" on loopback, where all streams are one user's. last_id: of the last event that was
  // seen, "" for none. welcome: asked now and then; once false, the stream ends. Pieces go to `send` until what is
  // returned is let go. Null: too many watch, or too many of his.
  std::shared_ptr<void> Subscribe(const std::string& who, const std::string& last_id, Present welcome,
                                  std::function<void(Chunk)> send);

  // Looks what changed, and tells it. To be called again and again; what is not due yet is left alone. time: of the
  // system's clock, for what is said.
  void Turn(SteadyTime now, absl::Time time);

 private:
  struct Subscriber {
    std::string who;
    Present welcome;
    std::function<void(Chunk)> send;
  };
  // What is looked at now and then: not again before ten times as long as it took.
  struct Look {
    std::chrono::milliseconds least;
    SteadyTime due = SteadyTime::min();
  };
  void Loop();
  bool Watched();
  void EndForThoseNotWelcome();
  void TakeIfDue(Look& look, SteadyTime now, const char* name, Json& event, const std::function<Json()>& take);
  Json TakeJobs(SteadyTime now, absl::Time time);
  Json TakeDevices();
  Json TakeOverview(SteadyTime now);

  Shell* const shell_;
  const std::filesystem::path records_;
  // Of Turn alone.
  Look jobs_look_{std::chrono::milliseconds(250)}, devices_look_{std::chrono::seconds(1)},
      overview_look_{std::chrono::seconds(1)};
  SteadyTime all_jobs_due_ = SteadyTime::min(), overview_due_ = SteadyTime::min(), heartbeat_due_ = SteadyTime::min();
  std::map<std::string, std::string> job_signs_;
  std::set<std::string> behind_;      // open jobs that are not told of
  std::map<std::string, Json> jobs_;  // open ones, as last asked for
  Differences jobs_told_, devices_told_, overview_told_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  int64_t last_subscriber_ = 0;
  std::map<int64_t, std::shared_ptr<Subscriber>> subscribers_;
  EventRing ring_;
  std::thread thread_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_EVENTS_H_
