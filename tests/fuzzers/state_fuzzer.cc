// SPDX-License-Identifier: Apache-2.0
// The tracker's state file: any bytes in its place, and any bytes in its rows. A farm starts from whatever could be
// read.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "tests/farm/builders.h"
#include "tests/fuzzers/pieces.h"
#include "tracker/farm_state.h"
#include "tracker/queue/farm.h"

namespace hone::fuzzers {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(24 * 365 * 50);

void Start(const std::filesystem::path& file) {
  auto state = tracker::FarmState::Open(file, kNow);
  if (!state.ok()) return;
  auto jobs = state->TakeJobs(kNow);
  const auto drained = state->Drained();
  auto health = state->Health();
  if (!jobs.ok() || !drained.ok() || !health.ok()) return;
  tracker::Farm farm(tracker::FarmOptions(), state->incarnation(), tracker::CountingIds(), state->receipt_key());
  farm.Restore(*std::move(jobs), *drained, *std::move(health));
  farm.Tick(kNow + absl::Hours(1));
  farm.ListJobs(v1::ListJobsRequest(), kNow + absl::Hours(1));
  farm.ListDevices({}, kNow + absl::Hours(1));
}

// Two jobs, each a specification and a state, and two records of health.
void SaveRows(const std::filesystem::path& file, const std::vector<std::string_view>& pieces) {
  auto state = tracker::FarmState::Open(file, kNow);
  HONE_CHECK(state.ok());
  const auto piece = [&](size_t i) { return i < pieces.size() ? std::string(pieces[i]) : std::string(); };
  tracker::StateChanges changes;
  for (const size_t i : {0, 1}) {
    changes.jobs["job" + std::to_string(i)] = tracker::StoredJob{piece(2 * i), piece(2 * i + 1)};
    changes.health["device" + std::to_string(i)] = piece(4 + i);
  }
  HONE_CHECK(state->Save(changes).ok());
}

}  // namespace
}  // namespace hone::fuzzers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;  // NOLINT: one function
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  if (input.starts_with("SQLite")) {
    std::ofstream(folder / "state", std::ios::binary) << input;
  } else {
    fuzzers::SaveRows(folder / "state", fuzzers::Pieces(input));
  }
  fuzzers::Start(folder / "state");
  return 0;
}
