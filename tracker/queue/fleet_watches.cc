// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/fleet_watches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/status.h"
#include "proto/convert.h"
#include "tracker/queue/night_verdict.h"
#include "tracker/queue/notice_url.h"
#include "tracker/queue/run_task.h"
#include "tracker/queue/submitter.h"
#include "tracker/queue/text_limits.h"

namespace hone::tracker {
namespace {

constexpr char kDefaultAt[] = "02:00";
constexpr double kDefaultSlowerThan = 0.03, kSlowerThanMax = 10;
constexpr double kDefaultSeconds = 20, kWatchSecondsMax = 3600;
constexpr size_t kWatchNameBytesMax = 64;
constexpr size_t kNightTextBytesMax = 500;  // of a problem or a cause, 400 of which are kept of each device
constexpr absl::Duration kDay = absl::Hours(24);

// Minutes after midnight of "HH:MM"; -1: it has another form.
int MinuteOfDay(std::string_view at) {
  const auto digit = [&](size_t i) { return at[i] >= '0' && at[i] <= '9' ? at[i] - '0' : 100; };
  if (at.size() != 5 || at[2] != ':') return -1;
  const int hours = digit(0) * 10 + digit(1), minutes = digit(3) * 10 + digit(4);
  return hours < 24 && minutes < 60 ? hours * 60 + minutes : -1;
}

bool IsLetterOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

absl::Status CheckWatchName(const std::string& name) {
  const bool has_form =
      !name.empty() && name.size() <= kWatchNameBytesMax && IsLetterOrDigit(name[0]) &&
      std::ranges::all_of(name, [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
  if (has_form) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "the watch has the name '{}'; give 1 to {} letters, digits, '.', '_' and '-', the first a letter or a "
      "digit",
      TruncateUtf8(name, 80), kWatchNameBytesMax));
}

absl::Status CheckWatchedRun(const v1::RunTask& run) {
  if (run.packages_size() != 1) {
    return absl::InvalidArgumentError(fmt::format("the watch has {} packages; give one", run.packages_size()));
  }
  if (run.profile() || run.keep_outputs() || run.keep_values()) {
    return absl::InvalidArgumentError("a watch only measures times; leave out profile, keep_outputs and keep_values");
  }
  if (run.seconds() > kWatchSecondsMax) {
    return absl::InvalidArgumentError(
        fmt::format("the watch measures for {} seconds; the limit is {}", run.seconds(), kWatchSecondsMax));
  }
  return CheckRunTask(run);
}

void SetDefaults(v1::FleetWatchSpec& spec) {
  if (spec.at().empty()) spec.set_at(kDefaultAt);
  if (spec.slower_than() == 0) spec.set_slower_than(kDefaultSlowerThan);
  if (spec.run().seconds() == 0) spec.mutable_run()->set_seconds(kDefaultSeconds);
}

absl::Status CheckWatch(const v1::FleetWatchSpec& spec, const std::vector<std::string>& notify_allowed) {
  HONE_RETURN_IF_ERROR(CheckWatchName(spec.name()));
  HONE_RETURN_IF_ERROR(CheckWatchedRun(spec.run()));
  if (MinuteOfDay(spec.at()) < 0) {
    return absl::InvalidArgumentError(
        fmt::format("the watch is at '{}'; give a time of day in UTC such as 02:00", TruncateUtf8(spec.at(), 80)));
  }
  if (!(spec.slower_than() > 0 && spec.slower_than() <= kSlowerThanMax)) {  // true for NaN
    return absl::InvalidArgumentError(
        fmt::format("the watch allows a slow-down by the fraction {}; give more than 0 and at most {}",
                    spec.slower_than(), kSlowerThanMax));
  }
  return spec.notify_url().empty() ? absl::OkStatus() : CheckNoticeUrl(spec.notify_url(), notify_allowed);
}

// Whether the receiver of notices is to hear of a night with this verdict when it knows `told`.
bool IsNews(v1::FleetVerdict verdict, v1::FleetVerdict told) {
  switch (verdict) {
    case v1::FLEET_VERDICT_SLOWER:
    case v1::FLEET_VERDICT_DRIFT:
      return verdict != told;
    case v1::FLEET_VERDICT_CHANGED:
      return true;
    case v1::FLEET_VERDICT_OK:
    case v1::FLEET_VERDICT_FASTER:
      return IsBad(told);
    default:
      return false;
  }
}

// Drops the oldest night if there are too many. The first measured ones since the accepted one stay, because a drift is
// measured against them.
void DropOldNight(int nights_max, v1::FleetWatchDevice& device) {
  if (device.nights_size() <= nights_max) return;
  // No later night is compared with those before an accepted one.
  if (std::any_of(device.nights().begin() + 1, device.nights().end(),
                  [](const auto& night) { return night.accepted(); })) {
    device.mutable_nights()->DeleteSubrange(0, 1);
    return;
  }
  int index = 0;
  for (int kept = 0; index + 1 < device.nights_size() && kept < kDriftNights; ++index) {
    if (WasMeasured(device.nights(index))) ++kept;
  }
  device.mutable_nights()->DeleteSubrange(index + 1 < device.nights_size() ? index : 0, 1);
}

}  // namespace

absl::Time NextDue(const std::string& at, absl::Time wall) {
  const absl::Time midnight = absl::FromUnixSeconds(absl::ToUnixSeconds(wall) / 86400 * 86400);
  const absl::Time due = midnight + absl::Minutes(MinuteOfDay(at));
  return due > wall ? due : due + kDay;
}

v1::FleetWatch WithNewestNights(const v1::FleetWatch& watch, int nights) {
  v1::FleetWatch shown;
  *shown.mutable_spec() = watch.spec();
  *shown.mutable_created() = watch.created();
  *shown.mutable_next() = watch.next();
  for (const v1::FleetWatchDevice& device : watch.devices()) {
    v1::FleetWatchDevice& copy = *shown.add_devices();
    copy = device;
    const int dropped = std::max(0, copy.nights_size() - nights);
    copy.mutable_nights()->DeleteSubrange(0, dropped);
  }
  return shown;
}

void FleetWatches::Restore(std::vector<v1::FleetWatch> watches) {
  for (v1::FleetWatch& watch : watches) {
    const std::string name = watch.spec().name();
    files_.Add(name, FilesOf(watch.spec().run()));
    watches_[name] = std::move(watch);
  }
}

absl::Status FleetWatches::CheckLimits(const v1::FleetWatchSpec& spec) const {
  int watches = 0, rows = spec.devices_size(), rows_total = spec.devices_size();
  for (const auto& [name, watch] : watches_) {
    rows_total += watch.devices_size();
    if (SubmitterOf(watch.spec()) != SubmitterOf(spec)) continue;
    ++watches;
    rows += watch.devices_size();
  }
  constexpr std::string_view kWhatToDo = "remove some first: hone watch-fleet remove NAME";
  if (spec.devices_size() > options_.devices_max) {
    return absl::InvalidArgumentError(fmt::format("the watch has {} devices; the limit is {}; add several watches",
                                                  spec.devices_size(), options_.devices_max));
  }
  if (watches >= options_.of_submitter_max || rows > options_.device_rows_max) {
    return absl::ResourceExhaustedError(fmt::format(
        "'{}' has {} watches, and with this one {} devices in them; the limits are {} watches and {} devices; {}",
        spec.submitted_by(), watches, rows, options_.of_submitter_max, options_.device_rows_max, kWhatToDo));
  }
  if (static_cast<int>(watches_.size()) < options_.total_max && rows_total <= options_.device_rows_total_max) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      fmt::format("the farm has {} watches, and with this one {} devices in them; the limits are {} watches and {} "
                  "devices; {}",
                  watches_.size(), rows_total, options_.total_max, options_.device_rows_total_max, kWhatToDo));
}

absl::StatusOr<const v1::FleetWatch*> FleetWatches::Add(v1::FleetWatchSpec spec, absl::Time wall) {
  SetDefaults(spec);
  HONE_RETURN_IF_ERROR(CheckWatch(spec, notify_allowed_));
  if (watches_.contains(spec.name())) {
    return absl::AlreadyExistsError(fmt::format(
        "there is a watch '{0}' already; give another name, or remove it first: hone watch-fleet remove {0}",
        spec.name()));
  }
  HONE_RETURN_IF_ERROR(CheckLimits(spec));
  v1::FleetWatch& watch = watches_[spec.name()];
  *watch.mutable_created() = ToProto(wall);
  *watch.mutable_next() = ToProto(NextDue(spec.at(), wall));
  changed_.emplace(spec.name(), "");
  for (const std::string& device : spec.devices()) {
    watch.add_devices()->set_device(device);
    changed_.emplace(spec.name(), device);
  }
  files_.Add(spec.name(), FilesOf(spec.run()));
  *watch.mutable_spec() = std::move(spec);
  return &watch;
}

void FleetWatches::Remove(const std::string& name) {
  const auto found = watches_.find(name);
  changed_.emplace(name, "");
  for (const v1::FleetWatchDevice& device : found->second.devices()) changed_.emplace(name, device.device());
  files_.Remove(name, FilesOf(found->second.spec().run()));
  watches_.erase(found);
}

const v1::FleetWatch* FleetWatches::Find(const std::string& name) const {
  const auto found = watches_.find(name);
  return found == watches_.end() ? nullptr : &found->second;
}

absl::StatusOr<const v1::FleetWatch*> FleetWatches::FindFor(const std::string& name,
                                                            const std::optional<std::string>& submitter) const {
  const v1::FleetWatch* watch = Find(name);
  if (watch == nullptr) {
    return absl::NotFoundError(
        fmt::format("there is no watch '{}'; hone watch-fleet lists them", TruncateUtf8(name, 80)));
  }
  if (!submitter.has_value() || *submitter == SubmitterOf(watch->spec())) return watch;
  return absl::PermissionDeniedError(
      fmt::format("the watch '{}' is of '{}'; only they and admins may change it", name, watch->spec().submitted_by()));
}

std::vector<std::pair<std::string, absl::Time>> FleetWatches::TakeDue(absl::Time wall) {
  std::vector<std::pair<std::string, absl::Time>> due;
  for (auto& [name, watch] : watches_) {
    const absl::Time next = FromProto(watch.next());
    // A due time more than a day away was set while the wall clock was wrong.
    if (next > wall && next <= wall + kDay) continue;
    if (next <= wall) due.emplace_back(name, next);
    *watch.mutable_next() = ToProto(NextDue(watch.spec().at(), wall));
    changed_.emplace(name, "");
  }
  return due;
}

v1::FleetWatchDevice& FleetWatches::At(const std::string& name, const std::string& device) {
  auto& devices = *watches_.at(name).mutable_devices();
  const auto found = std::ranges::find(devices, device, &v1::FleetWatchDevice::device);
  HONE_CHECK(found != devices.end());
  changed_.emplace(name, device);
  return *found;
}

void FleetWatches::NoteOpen(const std::string& name, const std::string& device, const std::string& job_id,
                            absl::Time due) {
  v1::FleetWatchDevice& row = At(name, device);
  row.set_open_job(job_id);
  *row.mutable_open_due() = ToProto(due);
}

void FleetWatches::EndNight(const std::string& name, const std::string& device, v1::FleetNight night) {
  v1::FleetWatchDevice& row = At(name, device);
  row.clear_open_job();
  row.clear_open_due();
  night.set_problem(TruncateUtf8(night.problem(), kNightTextBytesMax));
  const v1::FleetWatchSpec& spec = watches_.at(name).spec();
  const std::vector<v1::FleetNight> earlier(row.nights().begin(), row.nights().end());
  const NightVerdict verdict = JudgeNight(earlier, night, spec.slower_than());
  night.set_verdict(verdict.verdict);
  night.set_change(verdict.change);
  night.set_reference_seconds(verdict.reference_seconds);
  night.set_cause(TruncateUtf8(verdict.cause, kNightTextBytesMax));
  *row.add_nights() = std::move(night);
  DropOldNight(options_.nights_max, row);
  SetNotice(spec, row);
}

absl::Status FleetWatches::Accept(const std::string& name, const std::string& device) {
  const v1::FleetWatch& watch = watches_.at(name);
  bool known = device.empty(), accepted = false;
  for (const v1::FleetWatchDevice& each : watch.devices()) {
    if (!device.empty() && each.device() != device) continue;
    known = true;
    if (NewestMeasuredNight(each) == nullptr) continue;
    accepted = true;
    v1::FleetWatchDevice& row = At(name, each.device());
    auto& nights = *row.mutable_nights();
    const auto newest = std::ranges::find_if(nights.rbegin(), nights.rend(), WasMeasured);
    newest->set_accepted(true);
    row.set_told(v1::FLEET_VERDICT_OK);  // so that the next good night sends no notice
    if (row.has_notice()) row.mutable_notice()->set_closed(true);
  }
  if (!known) {
    return absl::NotFoundError(fmt::format("the watch '{}' has no device '{}'; hone watch-fleet show {} lists them",
                                           name, TruncateUtf8(device, 80), name));
  }
  if (accepted) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("the watch '{0}' has measured nothing yet; hone watch-fleet run {0} measures now", name));
}

// A notice is about the newest measured night; one about an earlier night that was not delivered gives way to it.
void FleetWatches::SetNotice(const v1::FleetWatchSpec& spec, v1::FleetWatchDevice& device) const {
  if (spec.notify_url().empty()) return;
  const v1::FleetVerdict verdict = device.nights().rbegin()->verdict();
  if (verdict == v1::FLEET_VERDICT_DID_NOT_RUN) return;
  device.mutable_notice()->Clear();
  device.mutable_notice()->set_closed(!IsNews(verdict, device.told()));
}

std::vector<NightNotice> FleetWatches::NoticesToSend() const {
  std::vector<NightNotice> notices;
  for (const auto& [name, watch] : watches_) {
    for (const v1::FleetWatchDevice& device : watch.devices()) {
      if (!device.has_notice() || device.notice().closed()) continue;
      const v1::FleetNight* night = NewestMeasuredNight(device);
      if (night == nullptr) continue;
      notices.push_back({name, device.device(), watch.spec().notify_url(), *night, device.notice()});
    }
  }
  return notices;
}

void FleetWatches::RecordNotice(const NightNotice& sent, const v1::JobNotice& notice) {
  const v1::FleetWatch* watch = Find(sent.watch);
  if (watch == nullptr) return;
  const auto& devices = watch->devices();
  if (std::ranges::find(devices, sent.device, &v1::FleetWatchDevice::device) == devices.end()) return;
  v1::FleetWatchDevice& row = At(sent.watch, sent.device);
  const bool delivered = notice.closed() && notice.problem().empty();
  const v1::FleetVerdict verdict = sent.night.verdict();
  if (delivered) row.set_told(IsBad(verdict) ? verdict : v1::FLEET_VERDICT_OK);
  const v1::FleetNight* newest = NewestMeasuredNight(row);
  const bool is_newest = newest != nullptr && newest->job_id() == sent.night.job_id();
  if (is_newest) {
    *row.mutable_notice() = notice;
  } else if (newest != nullptr) {  // another night ended meanwhile
    row.mutable_notice()->set_closed(!IsNews(newest->verdict(), row.told()));
  }
}

FleetWatches::Rows FleetWatches::TakeChanged() {
  Rows rows;
  for (const auto& key : std::exchange(changed_, {})) {
    std::optional<std::string>& row = rows[key];
    const v1::FleetWatch* watch = Find(key.first);
    if (watch == nullptr) continue;
    if (key.second.empty()) {
      v1::FleetWatch itself;
      *itself.mutable_spec() = watch->spec();
      *itself.mutable_created() = watch->created();
      *itself.mutable_next() = watch->next();
      row = itself.SerializeAsString();
      continue;
    }
    const auto& devices = watch->devices();
    const auto device = std::ranges::find(devices, key.second, &v1::FleetWatchDevice::device);
    if (device != devices.end()) row = device->SerializeAsString();
  }
  return rows;
}

}  // namespace hone::tracker
