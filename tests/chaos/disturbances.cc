// SPDX-License-Identifier: Apache-2.0
#include "tests/chaos/disturbances.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <utility>

namespace hone::chaos {
namespace {

constexpr double kPause = 2;  // average seconds between two disturbances

std::chrono::steady_clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Disturbances::Disturbances(Farm* farm, std::filesystem::path disk, uint64_t seed)
    : farm_(*farm), disk_(std::move(disk)), random_(seed), next_(Clock::now()) {}

void Disturbances::Tick(Clock::time_point now) {
  End(now);
  if (now < next_) return;
  next_ = now + Seconds(Between(0, 2 * kPause));
  Begin(now);
}

void Disturbances::End(Clock::time_point now) {
  for (size_t i = 0; i < endings_.size();) {
    if (endings_[i].when > now) {
      ++i;
      continue;
    }
    const Ending ending = std::move(endings_[i]);
    endings_.erase(endings_.begin() + static_cast<std::ptrdiff_t>(i));
    ending.end();
  }
}

void Disturbances::EndAll() { End(Clock::time_point::max()); }

void Disturbances::Begin(Clock::time_point now) {
  const double which = random_.Uniform();
  if (which < 0.06) return DropNetwork(now);
  if (which < 0.12) return FillDisk(now);
  DisturbMember(now);
}

void Disturbances::DisturbMember(Clock::time_point now) {
  // Each kind of member (tracker, tuner, board) is disturbed equally often, although there are many boards.
  std::vector<Member>& members = farm_.members();
  const std::string kinds[] = {"tracker", "tuner", "board"};
  const std::string& kind = kinds[static_cast<size_t>(random_.Uniform() * 3)];
  std::vector<Member*> those;
  for (Member& member : members) {
    if (member.name().starts_with(kind) && !Disturbed(member.name())) those.push_back(&member);
  }
  if (those.empty()) return;
  Member* const member = those[static_cast<size_t>(random_.Uniform() * static_cast<double>(those.size()))];
  const double how = random_.Uniform();
  if (how < 0.4) {
    const double seconds = Between(0.5, 35);  // sometimes longer than a lease
    spdlog::info("{} stands still for {:.0f} s", member->name(), seconds);
    ++counts_["stopped " + kind];
    member->Signal(SIGSTOP);
    return EndAfter(now, seconds, member->name(), [member] { member->Signal(SIGCONT); });
  }
  const bool killed = how < 0.8;
  const double seconds = Between(0, 5);
  spdlog::info("{} is {} and starts again in {:.0f} s", member->name(), killed ? "killed" : "asked to end", seconds);
  ++counts_[(killed ? "killed " : "restarted ") + kind];
  member->Signal(killed ? SIGKILL : SIGTERM);
  EndAfter(now, seconds, member->name(), [member] {
    member->Wait();
    member->Start();
  });
}

void Disturbances::DropNetwork(Clock::time_point now) {
  if (Disturbed("network")) return;
  const double seconds = Between(0.5, 25);
  spdlog::info("the network is gone for {:.0f} s", seconds);
  ++counts_["network lost"];
  SetLoopback(false);
  EndAfter(now, seconds, "network", [] { SetLoopback(true); });
}

void Disturbances::FillDisk(Clock::time_point now) {
  if (Disturbed("disk")) return;
  const double seconds = Between(0.5, 25);
  spdlog::info("the tracker's disk is full for {:.0f} s", seconds);
  ++counts_["disk full"];
  std::ofstream file(disk_ / "filling", std::ios::binary);
  const std::string block(4096, 'x');
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
  EndAfter(now, seconds, "disk", [this] { std::filesystem::remove(disk_ / "filling"); });
}

bool Disturbances::Disturbed(const std::string& whom) const {
  return std::any_of(endings_.begin(), endings_.end(), [&](const Ending& ending) { return ending.whom == whom; });
}

void Disturbances::EndAfter(Clock::time_point now, double seconds, const std::string& whom, std::function<void()> end) {
  endings_.push_back({now + Seconds(seconds), whom, std::move(end)});
}

}  // namespace hone::chaos
