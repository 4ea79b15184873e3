// One stream of what changes in the farm, for everybody who watches it: jobs, devices and counts, as server-sent
// events.
//
// Changes are gathered and told at most four times a second, and each event is built once, however many watch; while
// nobody does, nobody looks. Who was away for a moment gets what he missed; who was away for longer, or comes first, is
// told to ask anew ("reset"). A look never takes more than a tenth of the time. docs/API.md describes the events.
// Safe from any thread. Start at Subscribe; Turn is what its thread does.
#ifndef HONE_TRACKER_HTTP_EVENTS_H_
#define HONE_TRACKER_HTTP_EVENTS_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
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

 private:
  std::map<std::string, std::string> told_;
};

class EventFeed {
 public:
  // shell and records must outlive it. It has no thread until Start.
  EventFeed(Shell* shell, std::filesystem::path records);
  ~EventFeed();
  void Start();

  // last_id: of the last event that was seen, "" for none. welcome: asked now and then; once false, the stream ends.
  // Pieces go to `send` until what is returned is let go. Null: too many watch.
  std::shared_ptr<void> Subscribe(const std::string& last_id, Present welcome, std::function<void(Chunk)> send);

  // Looks what changed, and tells it. To be called again and again; what is not due yet is left alone.
  void Turn(absl::Time now);

 private:
  struct Subscriber {
    Present welcome;
    std::function<void(Chunk)> send;
  };
  // What is looked at now and then: not again before ten times as long as it took.
  struct Look {
    absl::Duration least;
    absl::Time due = absl::InfinitePast();
  };
  void Loop();
  bool Watched();
  void EndForThoseNotWelcome();
  void TakeIfDue(Look& look, absl::Time now, const char* name, Json& event, const std::function<Json()>& take);
  Json TakeJobs(absl::Time now);
  Json TakeDevices();
  Json TakeOverview();

  Shell* const shell_;
  const std::filesystem::path records_;
  // Of Turn alone.
  Look jobs_look_{absl::Milliseconds(250)}, devices_look_{absl::Seconds(1)}, overview_look_{absl::Seconds(1)};
  absl::Time all_jobs_due_ = absl::InfinitePast(), heartbeat_due_ = absl::InfinitePast();
  std::map<std::string, std::string> job_signs_;
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
