// SPDX-License-Identifier: Apache-2.0
// The search for the fastest schedule of one workload: it proposes candidates and is told their times.
//
// The first batch has the default schedule, the decisions of relatives, the preferred candidate of every space, and the
// best of many random candidates by the cost model, with a minimum distance between them. Evolution follows: it changes
// and mixes the decisions of good candidates, ranks hundreds by the cost model and proposes a few. When that brings no
// more progress, coordinate descent tries neighbours of the best candidates until none is left.
// The search measures nothing and reads no clock. It is deterministic for a seed and a sequence of calls. Not
// thread-safe. Start with Propose and Observe.
#ifndef HONE_TUNER_SEARCH_H_
#define HONE_TUNER_SEARCH_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "compiler/space/space.h"
#include "tuner/cost_model.h"
#include "tuner/features.h"
#include "tuner/search_parts.h"
#include "tuner/speed_factor.h"

namespace hone::tuner {

// How a candidate was found. kRelative includes candidates of earlier runs; kFirstBatch is a random one of the first
// batch.
enum class Origin : uint8_t { kDefault, kRelative, kFirstBatch, kEvolved, kDescent, kRandom };

struct Proposal {
  space::Decisions decisions;
  std::string schedule;  // text; it identifies the candidate
  Features features;     // empty for a candidate that is only measured again
  Origin origin = Origin::kRandom;
  // Estimate of the cost model when it was proposed; empty: nothing of the workload had a time then.
  std::optional<double> predicted_seconds;
};

class Search {
 public:
  // Builds a candidate from the chooser's decisions. An error means that the decisions are invalid: the candidate is
  // dropped and counted as illegal. Called from several threads at once.
  using Space = std::function<absl::StatusOr<space::Candidate>(space::Chooser&)>;

  struct Options {
    uint64_t seed = 0;
    int first_samples = 600;             // candidates drawn for the first batch
    int samples = 240;                   // candidates drawn for every later batch
    double random_share = 0.06;          // share of a later batch that is taken at random
    int threads = 1;                     // threads that build candidates
    int idle_rounds_max = 2;             // rounds without progress that do not yet end a phase
    std::vector<SizePoint> points = {};  // where candidates are measured; none without open sizes
    double progress = 0.01;  // smallest improvement of the best time, as a fraction, that counts as progress
    SearchParts parts = {};
  };

  Search(Space space, target::Target target, Options options);

  // Sets the default schedule. It is proposed first, even if no decisions lead to it.
  void SetDefault(Proposal default_proposal) { default_ = std::move(default_proposal); }
  // Adds decisions that were good for a similar workload; call it in the order of similarity. Up to half of the first
  // batch are such decisions. The others are proposed next, before any new candidate.
  void AddRelative(space::Decisions decisions) { relatives_.push_back(std::move(decisions)); }
  // Adds decisions that were good for this workload on another device or with another compiler, before all relatives.
  void AddNearest(space::Decisions decisions) { relatives_.insert(relatives_.begin(), std::move(decisions)); }
  // Adds a candidate that an earlier run measured; empty seconds: it failed. It is not proposed again, and evolution
  // may start from it. Decisions that do not lead to this schedule any more are ignored.
  void Remember(const space::Decisions& decisions, const std::string& schedule, std::optional<double> seconds);

  // At most `count` candidates without an outcome. Waiting ones come first, then the default schedule unless it was
  // proposed before, then new ones. Returns fewer or none if the space is exhausted, the search has converged, or it
  // must wait for outcomes.
  std::vector<Proposal> Propose(size_t count, const CostModel& model);
  // Takes in the outcome of a proposal; empty seconds: it failed, and an earlier time stays (Exclude drops it). noise:
  // spread of its repeats as a fraction of their median. A newer time replaces an older one, unless the estimate rests
  // on more than one timing.
  void Observe(const std::string& schedule, std::optional<double> seconds, double noise = 0);
  // Replaces the latency estimate of a schedule. Has no effect if the schedule has no time, or an estimate that rests
  // on more timings.
  void SetEstimate(const std::string& schedule, const LatencyEstimate& estimate);
  // Takes back a proposal without an outcome, because its batch was lost or the time was up. It is proposed once more,
  // but not a third time, since it may be what makes batches fail.
  void Withdraw(const std::string& schedule);
  // Excludes a schedule: its times are dropped, so it is neither the best nor a parent of other candidates.
  void Exclude(const std::string& schedule);
  // Appends all candidates with an outcome as samples with that workload number. Those without a time, such as failed
  // and excluded ones, have no seconds. The samples point into this object; they are valid until the next call of a
  // member that is not const.
  void CollectSamples(int workload, std::vector<Sample>* samples) const;
  // Frees the decisions of all candidates but the fastest, which are the only ones that are varied. Decisions with
  // their options take most of the search's memory.
  void DropSlowDecisions();

  bool converged() const { return phase_ == Phase::kDone; }
  // The smallest latency estimate; nullopt: no candidate has a time.
  std::optional<double> best_seconds() const;
  // The latency estimate of a schedule; nullopt: it has no time.
  std::optional<LatencyEstimate> EstimateOf(const std::string& schedule) const;
  // At most `count` candidates with a time, fastest first.
  std::vector<Proposal> Best(size_t count) const;
  // The number of candidates that were proposed, remembered or are waiting.
  size_t known() const { return known_.size(); }
  // The candidates that were drawn, and how many of them were of no use.
  struct Drawn {
    int64_t all = 0;
    int64_t illegal = 0;   // the decisions lead to no valid schedule
    int64_t repeated = 0;  // the schedule was drawn or proposed before
  };
  const Drawn& drawn() const { return drawn_; }

 private:
  enum class Phase : uint8_t { kFirst, kEvolve, kDescend, kDone };
  // A candidate to build: given decisions, and a rule for the decisions that are missing.
  struct Draw {
    space::Decisions given;
    bool random = true;  // missing decisions are made at random; false: the preferred option is taken
    Origin origin = Origin::kRandom;
  };
  // A candidate that was proposed, remembered, or waits to be proposed.
  struct Known {
    Proposal proposal;
    bool open = false;              // proposed, without an outcome yet
    bool withdrawn = false;         // it was withdrawn before; it is not proposed a third time
    bool observed = false;          // it has an outcome
    std::optional<double> seconds;  // latency estimate; empty: no time, or excluded
    int64_t timings = 1;            // as LatencyEstimate::timings
    double noise = 0;               // as Sample::noise
  };

  std::vector<Draw> FirstDraws();
  std::vector<Draw> EvolvedDraws();
  // The neighbours of the `around` fastest candidates: one decision differs, by one place in its options, or by any
  // number if there are at most four options.
  std::vector<Draw> Neighbours(size_t around);
  // The parent with one to three decisions changed.
  space::Decisions Mutated(const space::Decisions& parent);
  // The decisions of a, about half of them with the values of b.
  space::Decisions Crossed(const space::Decisions& a, const space::Decisions& b);
  // A random member of the population, which is sorted fastest first; faster ones are more likely.
  const Known* PickParent(const std::vector<const Known*>& population);
  std::vector<const Known*> Fastest(size_t count) const;

  // Builds the draws. Invalid and known candidates and duplicates are dropped and counted.
  std::vector<Proposal> Build(const std::vector<Draw>& draws);
  // Takes at most `count` schedules from waiting_.
  std::vector<Proposal> TakeWaiting(size_t count);
  std::vector<Proposal> ProposeNew(size_t count, const CostModel& model);
  std::vector<Proposal> FirstBatch(size_t count, const CostModel& model);
  std::vector<Proposal> EvolvedBatch(size_t count, const CostModel& model);
  // Sorts by the model's score, best first.
  void Rank(std::vector<Proposal>& proposals, const CostModel& model) const;
  // Sets predicted_seconds. Scores have no unit, so the candidates with a time calibrate them.
  void Predict(std::vector<Proposal>& proposals, const CostModel& model) const;
  void Take(std::vector<Proposal>& from, size_t count, size_t distance, std::vector<Proposal>& chosen) const;
  void UpdatePhase();
  bool HasOpen() const;

  const Space space_;
  const target::Target target_;
  const Options options_;
  Random random_;
  Phase phase_ = Phase::kFirst;
  std::optional<Proposal> default_;
  std::vector<space::Decisions> relatives_;
  std::map<std::string, Known> known_;  // by schedule text
  std::deque<std::string> waiting_;  // schedules to propose before new ones: withdrawn, or too many for the first batch
  size_t lost_ = 0;                  // how many at the front of waiting_ were withdrawn
  double best_at_last_check_ = 0;    // best seconds at the last progress; 0: none yet
  int idle_rounds_ = 0;              // rounds since the last progress
  bool news_ = false;                // an outcome has arrived since the last UpdatePhase
  Drawn drawn_;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_SEARCH_H_
