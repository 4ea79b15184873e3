// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "tracker/http/farm_view.h"

namespace hone::tracker {
namespace {

constexpr size_t kSubscribersMax = 1000;
constexpr size_t kEventsKept = 240;  // a minute of a busy farm
constexpr auto kHeartbeat = std::chrono::seconds(15);
constexpr auto kAllJobs = std::chrono::seconds(2);   // how often all jobs are read: waiting_for changes without events
constexpr auto kOverview = std::chrono::minutes(1);  // how often fields that always change (time, disk) are sent
constexpr auto kTurn = std::chrono::milliseconds(250);
constexpr int kShare = 10;

std::string Framed(std::string_view name, const std::string& id, const std::string& data) {
  return fmt::format("event: {}\nid: {}\ndata: {}\n\n", name, id, data);
}

std::string Dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string EventRing::IdOf(int64_t number) const { return fmt::format("{}-{}", boot_, number); }

Chunk EventRing::Add(std::string_view name, const Json& data) {
  chunks_.push_back(std::make_shared<const std::string>(Framed(name, IdOf(++last_), Dumped(data))));
  bytes_ += chunks_.back()->size();
  while (chunks_.size() > most_ || (chunks_.size() > 1 && bytes_ > kBytesMax)) {
    bytes_ -= chunks_.front()->size();
    chunks_.pop_front();
  }
  return chunks_.back();
}

void EventRing::Reset() {
  ++last_;
  bytes_ = 0;
  chunks_.clear();
}

std::vector<Chunk> EventRing::After(std::string_view last_id) const {
  const int64_t first = last_ - static_cast<int64_t>(chunks_.size());  // number of the event before the oldest kept one
  for (int64_t number = first; number <= last_; ++number) {
    if (last_id == IdOf(number)) return {chunks_.begin() + (number - first), chunks_.end()};
  }
  return {std::make_shared<const std::string>("retry: 2000\n" + Framed("reset", IdOf(last_), "{}"))};
}

Json ChangeTracker::Take(const std::map<std::string, Json>& now, const std::vector<std::string>& ignored_fields) {
  Json changed = Json::array(), gone = Json::array();
  for (auto told = reported_.begin(); told != reported_.end();) {
    if (now.contains(told->first)) {
      ++told;
    } else {
      gone.push_back(told->first);
      told = reported_.erase(told);
    }
  }
  for (const auto& [name, thing] : now) {
    Json lasting = thing;
    for (const std::string& field : ignored_fields) lasting.erase(field);
    std::string text = Dumped(lasting);
    std::string& told = reported_[name];
    if (told == text) continue;
    told = std::move(text);
    changed.push_back(thing);
  }
  if (changed.empty() && gone.empty()) return nullptr;
  return {{"changed", std::move(changed)}, {"gone", std::move(gone)}};
}

EventFeed::EventFeed(Shell* shell, std::filesystem::path records)
    : shell_(shell),
      records_(std::move(records)),
      ring_(fmt::format("{:x}", absl::ToUnixMillis(shell->started())), kEventsKept) {}

EventFeed::~EventFeed() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void EventFeed::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void EventFeed::Loop() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !subscribers_.empty(); });
      if (wake_.wait_for(lock, kTurn, [this] { return stopping_; })) return;
    }
    Poll(std::chrono::steady_clock::now(), absl::Now());
  }
}

std::shared_ptr<void> EventFeed::Subscribe(const std::string& who, const std::string& last_id, Present allowed,
                                           std::function<void(Chunk)> send) {
  const std::lock_guard lock(mutex_);
  const auto of_his =
      std::count_if(subscribers_.begin(), subscribers_.end(), [&](const auto& s) { return s.second->who == who; });
  if (subscribers_.size() >= kSubscribersMax || (!who.empty() && of_his >= kStreamsPerIdentityMax)) return nullptr;
  // Without subscribers the feed did not poll, so changes since then are in no event.
  if (subscribers_.empty()) ring_.Reset();
  for (const Chunk& missed : ring_.After(last_id)) send(missed);
  const int64_t number = ++last_subscriber_;
  subscribers_[number] = std::make_shared<Subscriber>(Subscriber{who, std::move(allowed), std::move(send)});
  wake_.notify_all();
  return {this, [number](EventFeed* feed) {
            const std::lock_guard lock(feed->mutex_);
            feed->subscribers_.erase(number);
          }};
}

bool EventFeed::HasSubscribers() {
  const std::lock_guard lock(mutex_);
  return !subscribers_.empty();
}

void EventFeed::EndStreamsNotAllowed() {
  // `allowed` is foreign code, so it is called without the lock, on a copy of the subscribers.
  std::map<int64_t, std::shared_ptr<Subscriber>> here;
  {
    const std::lock_guard lock(mutex_);
    here = subscribers_;
  }
  std::erase_if(here, [](const auto& entry) { return entry.second->allowed(); });
  const std::lock_guard lock(mutex_);
  for (const auto& [number, subscriber] : here) {
    if (subscribers_.erase(number) > 0) subscriber->send(nullptr);
  }
}

void EventFeed::Poll(SteadyTime now, absl::Time time) {
  if (!HasSubscribers()) return;
  EndStreamsNotAllowed();
  Json event = Json::object();
  PollIfDue(jobs_timer_, now, "jobs", event, [&] { return TakeJobs(now, time); });
  PollIfDue(devices_timer_, now, "devices", event, [this] { return TakeDevices(); });
  PollIfDue(overview_timer_, now, "overview", event, [&] { return TakeOverview(now); });
  const std::lock_guard lock(mutex_);
  Chunk chunk;
  if (!event.empty()) {
    chunk = ring_.Add("change", event);
  } else if (now >= heartbeat_due_) {
    chunk = std::make_shared<const std::string>(": \n\n");
  }
  if (chunk == nullptr) return;
  heartbeat_due_ = now + kHeartbeat;
  for (const auto& [number, subscriber] : subscribers_) subscriber->send(chunk);
}

void EventFeed::PollIfDue(PollTimer& timer, SteadyTime now, const char* name, Json& event,
                          const std::function<Json()>& take) {
  if (now < timer.due) return;
  const SteadyTime begun = std::chrono::steady_clock::now();
  Json taken = take();
  timer.due = now + std::max<SteadyTime::duration>(timer.least, kShare * (std::chrono::steady_clock::now() - begun));
  if (!taken.is_null()) event[name] = std::move(taken);
}

// Reads only jobs whose signs changed, and all jobs once per kAllJobs. A job that ended is reported a last time and
// then as gone. An open job that newer ones push out of the list is also reported a last time, and again when it runs
// or ends.
Json EventFeed::TakeJobs(SteadyTime now, absl::Time time) {
  const bool all = now >= all_jobs_due_;
  if (all) all_jobs_due_ = now + kAllJobs;
  std::map<std::string, std::string> signs = VersionsOfOpenJobs(*shell_, kPageJobsMax);
  std::vector<std::string> asked;
  for (const auto& [id, sign] : signs) {
    const auto before = job_versions_.find(id);
    if (all || before == job_versions_.end() || before->second != sign) asked.push_back(id);
  }
  std::set<std::string> left = std::exchange(behind_, {});
  for (const auto& [id, sign] : job_versions_) left.insert(id);
  std::erase_if(left, [&](const std::string& id) { return signs.contains(id); });
  if (!left.empty()) behind_ = OpenAmong(*shell_, left);
  for (const std::string& id : left) {
    if (job_versions_.contains(id) || !behind_.contains(id)) asked.push_back(id);
  }
  for (const v1::Job& job : GetJobs(*shell_, asked)) jobs_[job.id()] = JobToJson(job, time);
  job_versions_ = std::move(signs);
  Json taken = reported_jobs_.Take(jobs_, {"seconds_left"});
  for (const std::string& id : left) jobs_.erase(id);
  for (const std::string& id : behind_) reported_jobs_.Forget(id);
  return taken;
}

Json EventFeed::TakeDevices() {
  const std::map<std::string, Running> running = RunningOn(*shell_);
  std::map<std::string, Json> devices;
  const v1::ListDevicesResponse all = shell_->ListDevices({});
  for (const v1::Device& device : all.devices()) {
    const std::string name = NameOf(device.agent_id(), device.state().device_id());
    const auto work = running.find(name);
    devices[name] = DeviceToJson(device, work == running.end() ? nullptr : &work->second);
  }
  return reported_devices_.Take(devices, {"last_seen"});
}

Json EventFeed::TakeOverview(SteadyTime now) {
  Json overview = OverviewToJson(*shell_, records_);
  const bool changed =
      !reported_overview_.Take({{"", overview}}, {"time", "records_bytes", "disk_free_bytes"}).is_null();
  if (!changed && now < overview_due_) return nullptr;
  overview_due_ = now + kOverview;
  return overview;
}

}  // namespace hone::tracker
