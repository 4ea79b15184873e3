// SPDX-License-Identifier: Apache-2.0
// Trains the cost model that the project ships (tuner/pretrained.h) from records files, and evaluates it on models that
// were not in its training data. docs/TESTING.md, "The pretrained model".
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/median.h"
#include "base/status.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "fmt/format.h"
#include "records/store.h"
#include "storage/open.h"
#include "tuner/cost_model.h"

namespace hone::tuner {
namespace {

constexpr size_t kCandidatesMin = 24;  // minimum for a workload: with fewer, the best one says little
constexpr size_t kFirstBatch = 16;
constexpr BoostedModel::Options kOptions = {.rounds = 150};

// One workload of one file on one target.
struct Measured {
  size_t file = 0;
  std::vector<Features> features;
  std::vector<double> seconds;
};

std::optional<Features> FeaturesOf(const records::Record& record, const target::Target& target) {
  const absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(record.workload_text);
  const absl::StatusOr<schedule::Schedule> steps = schedule::ParseSchedule(record.schedule);
  if (!workload.ok() || !steps.ok()) return std::nullopt;
  schedule::State state = schedule::InitialState(*workload);
  for (const schedule::Step& step : *steps) {
    if (!schedule::Apply(step, state).ok()) return std::nullopt;
  }
  return ExtractFeatures(state, target);
}

// Reads each schedule once, with the median of all its times. Skips schedules that no longer apply.
absl::Status Read(const std::string& path, size_t file, std::vector<Measured>& all) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<records::Store> store,
                        storage::OpenRecords(path, records::OpenMode::kReadOnly));
  struct Candidate {
    records::Record record;
    std::vector<double> seconds;
  };
  std::map<std::pair<std::string, std::string>, std::map<std::string, Candidate>> workloads;  // by digest and target
  records::Filter timed;
  timed.outcomes = records::Filter::Outcomes::kTimed;
  timed.with_workload_text = true;
  HONE_RETURN_IF_ERROR(store->ForEach(timed, [&](const records::StoredRecord& stored) {
    const records::Record& record = stored.record;
    if (!record.sizes.empty()) return absl::OkStatus();  // a sum over sizes, of which features know the largest only
    Candidate& candidate = workloads[{record.key.workload_digest, record.key.target}]
                               .try_emplace(record.schedule, Candidate{record, {}})
                               .first->second;
    candidate.seconds.push_back(Median(std::get<records::Timing>(record.outcome).seconds));
    return absl::OkStatus();
  }));
  for (const auto& [key, candidates] : workloads) {
    const absl::StatusOr<target::Target> target = target::ParseTarget(key.second);
    if (!target.ok() || target->kind != target::Kind::kCpu) continue;
    Measured measured{.file = file};
    for (const auto& [schedule, candidate] : candidates) {
      std::optional<Features> features = FeaturesOf(candidate.record, *target);
      if (!features.has_value()) continue;
      measured.features.push_back(*std::move(features));
      measured.seconds.push_back(Median(candidate.seconds));
    }
    if (measured.seconds.size() >= kCandidatesMin) all.push_back(std::move(measured));
  }
  return absl::OkStatus();
}

// Trains on all workloads except those of file number `but`; if there is no such file, on all.
absl::StatusOr<std::unique_ptr<BoostedModel>> TrainOn(const std::vector<Measured>& all, size_t but) {
  std::vector<Sample> samples;
  for (size_t w = 0; w < all.size(); ++w) {
    if (all[w].file == but) continue;
    for (size_t i = 0; i < all[w].seconds.size(); ++i) {
      samples.push_back({&all[w].features[i], static_cast<int>(w), all[w].seconds[i]});
    }
  }
  return BoostedModel::Train(samples, kOptions, std::make_shared<AnalyticModel>());
}

// Returns the best time among the `count` candidates that the model scores highest, divided by the best time of all.
double LossOf(const CostModel& model, const Measured& measured, size_t count) {
  std::vector<const Features*> candidates;
  for (const Features& features : measured.features) candidates.push_back(&features);
  const std::vector<double> scores = model.Score(candidates);
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  double best = measured.seconds[order[0]];
  for (size_t i = 1; i < std::min(count, order.size()); ++i) best = std::min(best, measured.seconds[order[i]]);
  return best / *std::ranges::min_element(measured.seconds);
}

// Prints geometric means over all workloads. Each workload is judged by a model that was trained without its file.
absl::Status Judge(const std::vector<Measured>& all, size_t files) {
  const AnalyticModel draft;
  std::map<size_t, std::pair<double, double>> logarithms;  // by candidates taken: analytic model, trained model
  for (size_t file = 0; file < files; ++file) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<BoostedModel> model, TrainOn(all, file));
    for (const Measured& measured : all) {
      if (measured.file != file) continue;
      for (const size_t count : {size_t{1}, size_t{4}, kFirstBatch}) {
        logarithms[count].first += std::log(LossOf(draft, measured, count));
        logarithms[count].second += std::log(LossOf(*model, measured, count));
      }
    }
  }
  const auto mean = [&](double sum) { return std::exp(sum / static_cast<double>(all.size())); };
  for (const auto& [count, sums] : logarithms) {
    fmt::print(
        "the best of {:2} that are chosen, times the best of all: draft {:.3f}, trained on the other files {:.3f}\n",
        count, mean(sums.first), mean(sums.second));
  }
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string>& paths, const std::string& output) {
  std::vector<Measured> all;
  for (size_t file = 0; file < paths.size(); ++file) HONE_RETURN_IF_ERROR(Read(paths[file], file, all));
  if (all.empty()) return absl::NotFoundError("no workload in these files has enough timed candidates of a CPU");
  if (paths.size() > 1) HONE_RETURN_IF_ERROR(Judge(all, paths.size()));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<BoostedModel> model, TrainOn(all, paths.size()));
  HONE_ASSIGN_OR_RETURN(const std::string bytes, model->Save());
  if (!(std::ofstream(output, std::ios::binary) << bytes)) return absl::UnavailableError("cannot write " + output);
  fmt::print("{}: {} workloads, {} bytes\n", output, all.size(), bytes.size());
  return absl::OkStatus();
}

}  // namespace
}  // namespace hone::tuner

int main(int argc, char** argv) {
  CLI::App app("Trains the cost model that Hone ships from records files, one for each model that was tuned");
  std::vector<std::string> paths;
  std::string output;
  app.add_option("records", paths, "records files")->required()->check(CLI::ExistingFile);
  app.add_option("-o,--output", output, "file to write: tuner/pretrained/cpu.ubj")->required();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = hone::tuner::Run(paths, output);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
