// SPDX-License-Identifier: Apache-2.0
// The stream of changes in the farm: jobs, devices and counts, as server-sent events for all subscribers.
//
// The feed polls the farm at most four times a second and builds each event once for all subscribers. Without
// subscribers it does not poll. A subscriber that comes back after a short break gets the events it missed. A new one,
// or one whose missed events are gone, is told to load everything again ("reset"). Polling takes at most a tenth of the
// time. docs/API.md describes the events. Safe from any thread. Start at Subscribe, and at Poll, which the feed's
// thread calls.
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

// The newest events, for subscribers that come back. Not thread-safe.
class EventRing {
 public:
  // The limit for all events together; the newest is kept whatever its size. A busy farm's minute is far below.
  static constexpr size_t kBytesMax = size_t{32} << 20;
  // boot: identifies this start of the tracker, because event numbers of another start mean nothing. most: how many
  // events are kept.
  EventRing(std::string boot, size_t most) : boot_(std::move(boot)), most_(most) {}

  // Adds an event and returns it in the form that is sent.
  Chunk Add(std::string_view name, const Json& data);
  // Forgets all events: a subscriber that comes back with an id given before is told to reset.
  void Reset();
  // The events after the one with that id; a single "reset" event where they are not known any more.
  std::vector<Chunk> After(std::string_view last_id) const;

 private:
  std::string IdOf(int64_t number) const;

  const std::string boot_;
  const size_t most_;
  size_t bytes_ = 0;
  int64_t last_ = 0;  // number of the newest
  std::deque<Chunk> chunks_;
};

// Finds the objects that changed since they were last reported. Not thread-safe.
class ChangeTracker {
 public:
  // Compares all current objects, by name, with those of the last call. Fields in `ignored_fields`, which always
  // change, do not count. Returns {"changed": [objects], "gone": [names]}, or null where nothing changed.
  Json Take(const std::map<std::string, Json>& now, const std::vector<std::string>& ignored_fields);
  // Forgets an object: it is not reported as gone, and is reported as changed when it comes again.
  void Forget(const std::string& name) { reported_.erase(name); }

 private:
  std::map<std::string, std::string> reported_;
};

class EventFeed {
 public:
  // Polling is timed by a steady clock, because the system's clock may be set back.
  using SteadyTime = std::chrono::steady_clock::time_point;
  // The most streams of one identity: enough for a user's pages and scripts, and few against the limit for all.
  static constexpr int kStreamsPerIdentityMax = 32;

  // shell must outlive it. records: the path of the records file. It has no thread until Start.
  EventFeed(Shell* shell, std::filesystem::path records);
  ~EventFeed();
  void Start();

  // Subscribes. Chunks go to `send` until the returned token is destroyed; the feed must outlive the token. `send` is
  // called under the feed's lock, first with missed events before this returns, so it must neither wait nor call the
  // feed. Returns null if there are too many subscribers, in all or of this identity. who: the identity's name, "" on
  // loopback, where all streams are one user's. last_id: the id of the last event that the subscriber got, "" for none.
  // allowed: called regularly; once false, a null chunk ends the stream.
  std::shared_ptr<void> Subscribe(const std::string& who, const std::string& last_id, Present allowed,
                                  std::function<void(Chunk)> send);

  // Polls what is due and sends events about changes. Must be called regularly. time: the wall time, for the events.
  void Poll(SteadyTime now, absl::Time time);

 private:
  struct Subscriber {
    std::string who;
    Present allowed;
    std::function<void(Chunk)> send;
  };
  // When to poll again: after `least`, but not before ten times as long as the last poll took.
  struct PollTimer {
    std::chrono::milliseconds least;
    SteadyTime due = SteadyTime::min();
  };
  void Loop();
  bool HasSubscribers();
  void EndStreamsNotAllowed();
  void PollIfDue(PollTimer& timer, SteadyTime now, const char* name, Json& event, const std::function<Json()>& take);
  Json TakeJobs(SteadyTime now, absl::Time time);
  Json TakeDevices();
  Json TakeOverview(SteadyTime now);

  Shell* const shell_;
  const std::filesystem::path records_;
  // Used only by Poll.
  PollTimer jobs_timer_{std::chrono::milliseconds(250)}, devices_timer_{std::chrono::seconds(1)},
      overview_timer_{std::chrono::seconds(1)};
  SteadyTime all_jobs_due_ = SteadyTime::min(), overview_due_ = SteadyTime::min(), heartbeat_due_ = SteadyTime::min();
  std::map<std::string, std::string> job_versions_;  // by job: a text that changes when its state or progress does
  std::set<std::string> behind_;      // open jobs that are not reported, because newer ones fill the list
  std::map<std::string, Json> jobs_;  // open jobs, as last read
  ChangeTracker reported_jobs_, reported_devices_, reported_overview_;

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
