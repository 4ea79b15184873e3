// SPDX-License-Identifier: Apache-2.0
#include "tuner/search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "base/median.h"
#include "base/run_parallel.h"
#include "base/status.h"
#include "compiler/schedule/step.h"

namespace hone::tuner {
namespace {

constexpr size_t kPopulation = 24;  // fastest candidates that are parents in the evolution
constexpr size_t kDescendFrom = 4;  // fastest candidates whose neighbours coordinate descent tries
// Fastest candidates that keep their decisions. They may become parents or finalists if others turn out to be slower.
constexpr size_t kVaried = 4 * kPopulation;
constexpr size_t kTimedForPrediction = 32;  // fastest candidates that calibrate predictions; new ones are near them

const space::Decision* Find(const space::Decisions& decisions, const std::string& name) {
  const auto it =
      std::find_if(decisions.begin(), decisions.end(), [&](const space::Decision& d) { return d.name == name; });
  return it == decisions.end() ? nullptr : &*it;
}

// The number of decisions in which a and b differ.
size_t Distance(const space::Decisions& a, const space::Decisions& b) {
  size_t same = 0;
  for (const space::Decision& d : a) {
    const space::Decision* other = Find(b, d.name);
    same += other != nullptr && other->value == d.value ? 1 : 0;
  }
  return std::max(a.size(), b.size()) - same;
}

// The option `steps` places from the current one, or the first or last option if that is beyond the ends.
int64_t OptionNear(const space::Decision& decision, int steps) {
  const auto& options = decision.options;
  const auto at = std::find(options.begin(), options.end(), decision.value) - options.begin();
  const auto moved = std::clamp<std::ptrdiff_t>(at + steps, 0, static_cast<std::ptrdiff_t>(options.size()) - 1);
  return options[static_cast<size_t>(moved)];
}

}  // namespace

Search::Search(Space space, target::Target target, Options options)
    : space_(std::move(space)), target_(std::move(target)), options_(options), random_(options.seed) {}

void Search::Remember(const space::Decisions& decisions, const std::string& schedule, std::optional<double> seconds) {
  if (known_.contains(schedule)) return Observe(schedule, seconds);
  if (default_.has_value() && default_->schedule == schedule) {
    known_[schedule] = {.proposal = *default_};
    return Observe(schedule, seconds);
  }
  // Rebuild the candidate, because recorded decisions have neither options nor features. If they do not lead to the
  // same schedule, the space has changed since, and the candidate may be tried again.
  space::Chooser chooser(&decisions);
  const absl::StatusOr<space::Candidate> candidate = space_(chooser);
  if (!candidate.ok() || schedule::Print(candidate->schedule) != schedule) return;
  known_[schedule] = {
      {candidate->decisions, schedule, ExtractFeatures(candidate->state, target_, options_.points), Origin::kRelative}};
  Observe(schedule, seconds);
}

void Search::Observe(const std::string& schedule, std::optional<double> seconds, double noise) {
  const auto it = known_.find(schedule);
  if (it == known_.end()) return;
  Known& known = it->second;
  known.open = false;
  known.observed = true;
  news_ = true;
  if (!seconds.has_value() || (known.seconds.has_value() && known.timings > 1)) return;
  known.seconds = seconds;
  known.noise = noise;
}

void Search::SetEstimate(const std::string& schedule, const LatencyEstimate& estimate) {
  const auto it = known_.find(schedule);
  if (it == known_.end() || !it->second.seconds.has_value() || estimate.timings < it->second.timings) return;
  it->second.seconds = estimate.seconds;
  it->second.timings = estimate.timings;
}

void Search::Withdraw(const std::string& schedule) {
  const auto it = known_.find(schedule);
  if (it == known_.end() || !std::exchange(it->second.open, false)) return;
  if (std::exchange(it->second.withdrawn, true)) return;
  waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(lost_++), schedule);
}

void Search::Exclude(const std::string& schedule) {
  Observe(schedule, std::nullopt);
  const auto it = known_.find(schedule);
  if (it == known_.end() || !it->second.seconds.has_value()) return;
  it->second.seconds.reset();
  it->second.timings = 1;
  best_at_last_check_ = 0;  // so that the next best counts as progress although it is slower
}

void Search::CollectSamples(int workload, std::vector<Sample>* samples) const {
  for (const auto& [text, known] : known_) {
    if (known.observed) samples->push_back({&known.proposal.features, workload, known.seconds, known.noise});
  }
}

void Search::DropSlowDecisions() {
  const std::vector<const Known*> fastest = Fastest(kVaried);
  const std::set<const Known*> varied(fastest.begin(), fastest.end());
  for (auto& [text, known] : known_) {
    if (known.observed && !varied.contains(&known)) known.proposal.decisions = space::Decisions();
  }
}

std::optional<double> Search::best_seconds() const {
  const std::vector<const Known*> fastest = Fastest(1);
  return fastest.empty() ? std::nullopt : fastest.front()->seconds;
}

std::optional<LatencyEstimate> Search::EstimateOf(const std::string& schedule) const {
  const auto it = known_.find(schedule);
  if (it == known_.end() || !it->second.seconds.has_value()) return std::nullopt;
  return LatencyEstimate{*it->second.seconds, it->second.timings};
}

std::vector<const Search::Known*> Search::Fastest(size_t count) const {
  std::vector<const Known*> timed;
  for (const auto& [text, known] : known_) {
    if (known.seconds.has_value()) timed.push_back(&known);
  }
  std::stable_sort(timed.begin(), timed.end(),
                   [](const Known* a, const Known* b) { return *a->seconds < *b->seconds; });
  if (timed.size() > count) timed.resize(count);
  return timed;
}

std::vector<Proposal> Search::Best(size_t count) const {
  std::vector<Proposal> best;
  for (const Known* known : Fastest(count)) best.push_back(known->proposal);
  return best;
}

space::Decisions Search::Mutated(const space::Decisions& parent) {
  space::Decisions child = parent;
  std::vector<size_t> free;
  for (size_t i = 0; i < child.size(); ++i) {
    if (child[i].options.size() > 1) free.push_back(i);
  }
  if (free.empty()) return child;
  const int64_t changes = 1 + (random_.Uniform() < 0.4 ? 1 : 0) + (random_.Uniform() < 0.1 ? 1 : 0);
  for (int64_t c = 0; c < changes; ++c) {
    space::Decision& d = child[free[static_cast<size_t>(random_.Below(static_cast<int64_t>(free.size())))]];
    const bool step = random_.Uniform() < 0.5;
    d.value = step ? OptionNear(d, random_.Below(2) == 0 ? -1 : 1)
                   : d.options[static_cast<size_t>(random_.Below(static_cast<int64_t>(d.options.size())))];
  }
  return child;
}

space::Decisions Search::Crossed(const space::Decisions& a, const space::Decisions& b) {
  space::Decisions child = a;
  for (space::Decision& d : child) {
    const space::Decision* other = Find(b, d.name);
    if (other != nullptr && random_.Below(2) == 0) d.value = other->value;
  }
  return child;
}

std::vector<Search::Draw> Search::FirstDraws() {
  std::vector<Draw> draws;
  space::Chooser chooser;
  const absl::StatusOr<space::Candidate> preferred = space_(chooser);
  if (options_.parts.preferred) draws.push_back({{}, false, Origin::kDefault});
  if (options_.parts.relatives) {
    for (const space::Decisions& relative : relatives_) draws.push_back({relative, false, Origin::kRelative});
  }
  if (options_.parts.preferred) {
    const space::Decision* spaces =
        preferred.ok() ? Find(preferred->decisions, std::string(space::kSpaceDecision)) : nullptr;
    const std::vector<int64_t> ids = spaces == nullptr ? std::vector<int64_t>() : spaces->options;
    for (const int64_t id : ids) draws.push_back({{{spaces->name, id, {}}}, false, Origin::kDefault});
  }
  // Half of the samples are random over the whole space. Half are near the preferred candidate, which is good by
  // construction.
  for (int i = 0; i < options_.first_samples; ++i) {
    const bool near = options_.parts.preferred && preferred.ok() && i % 2 == 0;
    draws.push_back({near ? Mutated(Mutated(preferred->decisions)) : space::Decisions(), true, Origin::kFirstBatch});
  }
  return draws;
}

// A tournament of two: the faster of two random members.
const Search::Known* Search::PickParent(const std::vector<const Known*>& population) {
  const auto size = static_cast<int64_t>(population.size());
  return population[static_cast<size_t>(std::min(random_.Below(size), random_.Below(size)))];
}

std::vector<Search::Draw> Search::EvolvedDraws() {
  const std::vector<const Known*> population = Fastest(kPopulation);
  std::vector<Draw> draws;
  for (int i = 0; i < options_.samples; ++i) {
    const double kind = population.empty() || !options_.parts.evolution ? 1 : random_.Uniform();
    if (kind < 0.6) {
      draws.push_back({Mutated(PickParent(population)->proposal.decisions), true, Origin::kEvolved});
    } else if (kind < 0.8) {
      const space::Decisions crossed =
          Crossed(PickParent(population)->proposal.decisions, PickParent(population)->proposal.decisions);
      draws.push_back({random_.Below(2) == 0 ? crossed : Mutated(crossed), true, Origin::kEvolved});
    } else {
      draws.push_back({{}, true, Origin::kRandom});
    }
  }
  return draws;
}

std::vector<Search::Draw> Search::Neighbours(size_t around) {
  std::vector<Draw> draws;
  for (const Known* known : Fastest(around)) {
    const space::Decisions& decisions = known->proposal.decisions;
    for (size_t i = 0; i < decisions.size(); ++i) {
      std::set<int64_t> values = {OptionNear(decisions[i], -1), OptionNear(decisions[i], 1)};
      if (decisions[i].options.size() <= 4) values.insert(decisions[i].options.begin(), decisions[i].options.end());
      values.erase(decisions[i].value);
      for (const int64_t value : values) {
        draws.push_back({decisions, false, Origin::kDescent});
        draws.back().given[i].value = value;
      }
    }
  }
  return draws;
}

std::vector<Proposal> Search::Build(const std::vector<Draw>& draws) {
  std::vector<std::optional<Proposal>> built(draws.size());
  const uint64_t seed = random_.Next();
  const absl::Status done = RunParallel(draws.size(), options_.threads, [&](size_t i) {
    Random random = Random::Nth(seed, i);
    space::Chooser chooser(&draws[i].given, draws[i].random ? &random : nullptr);
    absl::StatusOr<space::Candidate> candidate = space_(chooser);
    if (!candidate.ok()) return absl::OkStatus();
    std::string text = schedule::Print(candidate->schedule);
    if (known_.contains(text)) {
      built[i].emplace();  // valid but known: a proposal without features
      return absl::OkStatus();
    }
    built[i] = Proposal{std::move(candidate->decisions), std::move(text),
                        ExtractFeatures(candidate->state, target_, options_.points), draws[i].origin};
    return absl::OkStatus();
  });
  HONE_CHECK(done.ok());
  std::vector<Proposal> proposals;
  std::set<std::string> seen;
  for (std::optional<Proposal>& proposal : built) {
    ++drawn_.all;
    if (!proposal.has_value()) {
      ++drawn_.illegal;
    } else if (proposal->features.empty() || !seen.insert(proposal->schedule).second) {
      ++drawn_.repeated;
    } else {
      proposals.push_back(*std::move(proposal));
    }
  }
  return proposals;
}

void Search::Rank(std::vector<Proposal>& proposals, const CostModel& model) const {
  std::vector<const Features*> features;
  for (const Proposal& p : proposals) features.push_back(&p.features);
  const std::vector<double> scores = model.Score(features);
  std::vector<size_t> order(proposals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<Proposal> ranked;
  for (const size_t i : order) ranked.push_back(std::move(proposals[i]));
  proposals = std::move(ranked);
}

void Search::Predict(std::vector<Proposal>& proposals, const CostModel& model) const {
  const std::vector<const Known*> timed = Fastest(kTimedForPrediction);
  if (proposals.empty() || timed.empty()) return;
  std::vector<const Features*> features;
  for (const Known* known : timed) features.push_back(&known->proposal.features);
  for (const Proposal& p : proposals) features.push_back(&p.features);
  const std::vector<double> scores = model.Score(features);
  std::vector<double> offsets;
  for (size_t i = 0; i < timed.size(); ++i) offsets.push_back(std::log(*timed[i]->seconds) + scores[i]);
  const double offset = Median(std::move(offsets));
  for (size_t i = 0; i < proposals.size(); ++i) {
    const double seconds = std::exp(offset - scores[timed.size() + i]);
    if (std::isfinite(seconds) && seconds > 0) proposals[i].predicted_seconds = seconds;
  }
}

// Moves proposals from `from` to `chosen`, in order, until `chosen` has `count`. Skips those that have the schedule of
// a chosen one, or differ from a chosen one in fewer than `distance` decisions.
void Search::Take(std::vector<Proposal>& from, size_t count, size_t distance, std::vector<Proposal>& chosen) const {
  for (auto it = from.begin(); it != from.end() && chosen.size() < count;) {
    const bool apart = std::all_of(chosen.begin(), chosen.end(), [&](const Proposal& c) {
      return c.schedule != it->schedule && Distance(c.decisions, it->decisions) >= distance;
    });
    if (!apart) {
      ++it;
      continue;
    }
    chosen.push_back(std::move(*it));
    it = from.erase(it);
  }
}

bool Search::HasOpen() const {
  return std::any_of(known_.begin(), known_.end(), [](const auto& entry) { return entry.second.open; });
}

// Advances the phase after more than `idle_rounds_max` rounds without progress. A round without new outcomes does not
// count.
void Search::UpdatePhase() {
  const std::optional<double> best = best_seconds();
  if (phase_ == Phase::kFirst || !best.has_value() || !std::exchange(news_, false)) return;
  const bool progress = best_at_last_check_ == 0 || *best < best_at_last_check_ * (1 - options_.progress);
  if (progress) best_at_last_check_ = *best;
  idle_rounds_ = progress ? 0 : idle_rounds_ + 1;
  if (idle_rounds_ <= options_.idle_rounds_max || (phase_ == Phase::kEvolve && !options_.parts.descent)) return;
  if (phase_ == Phase::kDescend && HasOpen()) return;  // an open proposal may still bring progress
  phase_ = phase_ == Phase::kEvolve ? Phase::kDescend : Phase::kDone;
  idle_rounds_ = 0;
}

std::vector<Proposal> Search::FirstBatch(size_t count, const CostModel& model) {
  std::vector<Proposal> chosen;
  if (default_.has_value() && known_.try_emplace(default_->schedule).second) chosen.push_back(*default_);
  std::vector<Proposal> drawn = Build(FirstDraws());
  const auto fixed = std::stable_partition(drawn.begin(), drawn.end(), [](const Proposal& p) {
    return p.origin == Origin::kDefault || p.origin == Origin::kRelative;
  });
  std::vector<Proposal> ranked(std::make_move_iterator(fixed), std::make_move_iterator(drawn.end()));
  drawn.erase(fixed, drawn.end());
  Take(drawn, (count + 1) / 2, 0, chosen);
  for (Proposal& late : drawn) {
    waiting_.push_back(late.schedule);
    known_[late.schedule].proposal = std::move(late);
  }
  Rank(ranked, model);
  Take(ranked, count, 2, chosen);
  Take(ranked, count, 0, chosen);
  return chosen;
}

std::vector<Proposal> Search::EvolvedBatch(size_t count, const CostModel& model) {
  std::vector<Proposal> chosen, random;
  std::vector<Proposal> neighbours = Build(options_.parts.descent ? Neighbours(2) : std::vector<Draw>());
  Rank(neighbours, model);
  Take(neighbours, count / 4, 0, chosen);
  std::vector<Proposal> drawn = Build(EvolvedDraws());
  const double share = options_.random_share * static_cast<double>(count) + random_.Uniform();
  for (auto left = static_cast<size_t>(share); left > 0 && !drawn.empty(); --left) {
    const auto at = random_.Below(static_cast<int64_t>(drawn.size()));
    random.push_back(std::move(drawn[static_cast<size_t>(at)]));
    drawn.erase(drawn.begin() + at);
  }
  Rank(drawn, model);
  Take(drawn, count - std::min(count, random.size()), 0, chosen);
  Take(random, count, 0, chosen);
  Take(neighbours, count, 0, chosen);
  return chosen;
}

std::vector<Proposal> Search::TakeWaiting(size_t count) {
  std::vector<Proposal> taken;
  for (; taken.size() < count && !waiting_.empty(); waiting_.pop_front()) {
    lost_ -= std::min<size_t>(lost_, 1);
    Known& known = known_.at(waiting_.front());
    if (known.observed) continue;
    known.open = true;
    taken.push_back(known.proposal);
  }
  return taken;
}

std::vector<Proposal> Search::ProposeNew(size_t count, const CostModel& model) {
  std::vector<Proposal> chosen;
  if (phase_ == Phase::kFirst) {
    chosen = FirstBatch(count, model);
    phase_ = Phase::kEvolve;
  }
  if (chosen.empty() && phase_ == Phase::kEvolve) {
    chosen = EvolvedBatch(count, model);
    if (chosen.empty() && options_.parts.descent) phase_ = Phase::kDescend;  // evolution found no new candidate
  }
  if (chosen.empty() && phase_ == Phase::kDescend) {
    std::vector<Proposal> neighbours = Build(Neighbours(kDescendFrom));
    Rank(neighbours, model);
    Take(neighbours, count, 0, chosen);
  }
  if (chosen.empty() && !HasOpen()) phase_ = Phase::kDone;
  return chosen;
}

std::vector<Proposal> Search::Propose(size_t count, const CostModel& model) {
  UpdatePhase();
  // Before the search converges it waits for all open proposals.
  if (phase_ == Phase::kDescend && idle_rounds_ > options_.idle_rounds_max && HasOpen()) return {};
  std::vector<Proposal> chosen = TakeWaiting(count);
  if (chosen.size() < count) {
    std::vector<Proposal> fresh = ProposeNew(count - chosen.size(), model);
    std::move(fresh.begin(), fresh.end(), std::back_inserter(chosen));
  }
  Predict(chosen, model);
  for (const Proposal& p : chosen) {
    Known& known = known_[p.schedule];
    known.proposal = p;
    known.open = true;
  }
  return chosen;
}

}  // namespace hone::tuner
