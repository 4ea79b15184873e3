// SPDX-License-Identifier: Apache-2.0
#include "tracker/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "base/steady_time.h"
#include "tracker/queue/quotas.h"

namespace hone::tracker {
namespace {

constexpr absl::Duration kCheckPeriod = absl::Seconds(1);

}  // namespace

Streams::Stream::Stream(Streams* streams, std::string who, Present present, std::function<void()> cancel)
    : streams_(streams), who_(std::move(who)), present_(std::move(present)), cancel_(std::move(cancel)) {}

Streams::Stream::~Stream() {
  const std::lock_guard lock(streams_->mutex_);
  if (streams_->open_.erase(this) > 0) streams_->ended_.notify_all();
}

void Streams::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Loop(stop); });
}

absl::StatusOr<std::unique_ptr<Streams::Stream>> Streams::Begin(std::string who, Present present,
                                                                std::function<void()> cancel, absl::Duration wait_max) {
  auto stream = std::make_unique<Stream>(this, std::move(who), std::move(present), std::move(cancel));
  std::unique_lock lock(mutex_);
  const auto own = [&] {
    return std::count_if(open_.begin(), open_.end(), [&](const Stream* other) { return other->who_ == stream->who_; });
  };
  const auto room = [&] { return own() < kQuotas.streams && static_cast<int>(open_.size()) < kQuotas.streams_total; };
  if (!room() && static_cast<int>(waiting_.count(stream->who_)) >= kQuotas.stream_waits) {
    return absl::ResourceExhaustedError(
        fmt::format("{} calls of '{}' already wait for lists of records; make fewer calls at the same time",
                    kQuotas.stream_waits, stream->who_));
  }
  const auto waits = waiting_.insert(stream->who_);
  const absl::Time until = SteadyNow() + wait_max;
  bool is_there = true;
  while (!room() && is_there && SteadyNow() < until) {
    ended_.wait_for(lock, absl::ToChronoNanoseconds(std::min(kCheckPeriod, until - SteadyNow())));
    is_there = stream->present_();
  }
  waiting_.erase(waits);
  if (!is_there) return absl::CancelledError("the caller is gone, or its certificate was revoked");
  if (room()) {
    open_.insert(stream.get());
    return stream;
  }
  return absl::ResourceExhaustedError(fmt::format(
      "{} lists of records are being sent to '{}' and {} to all callers; the limits are {} and {}; call again later",
      own(), stream->who_, open_.size(), kQuotas.streams, kQuotas.streams_total));
}

void Streams::EndStalledStreams(absl::Time now) {
  const std::lock_guard lock(mutex_);  // held all the time, so that no stream is destroyed meanwhile
  for (Stream* stream : open_) {
    const int64_t progress = stream->progress_;
    if (progress != stream->seen_) {
      stream->seen_ = progress;
      stream->since_ = now;
    }
    if (now - stream->since_ > kPauseMax || !stream->present_()) stream->cancel_();
  }
}

void Streams::Loop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    EndStalledStreams(SteadyNow());
    stopped.wait_for(lock, stop, absl::ToChronoNanoseconds(kCheckPeriod), [] { return false; });
  }
}

}  // namespace hone::tracker
