// SPDX-License-Identifier: Apache-2.0
// The search for the fastest schedule of one workload: it sees decisions, proposes candidates, and is told their times.
//
// First the default, what relatives did well with, the preferred candidate of every space, and the best of many random
// candidates by the draft model, kept apart from one another. Then evolution: decisions of good candidates changed and
// mixed, thousands judged by the cost model, a few of them tried. When that brings nothing more, coordinate descent
// around the best, until no neighbour is left that promises anything. It measures nothing itself and knows no clock.
// Start with Propose and Observe. Deterministic for a seed and the same sequence of calls. Not thread-safe.
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
#include "tuner/belief.h"
#include "tuner/cost_model.h"
#include "tuner/features.h"
#include "tuner/search_parts.h"

namespace hone::tuner {

enum class Origin : uint8_t { kDefault, kRelative, kDraft, kEvolved, kDescent, kRandom };

struct Proposal {
  space::Decisions decisions;
  std::string schedule;  // text; candidates are the same if it is
  Features features;
  Origin origin = Origin::kRandom;
  // By the cost model that it was proposed with; empty where nothing of its workload had been timed.
  std::optional<double> predicted_seconds;
};

class Search {
 public:
  // Asks the chooser and builds the candidate. An error is an invalid choice: skipped and counted.
  using Space = std::function<absl::StatusOr<space::Candidate>(space::Chooser&)>;

  struct Options {
    uint64_t seed = 0;
    int first_samples = 600;  // candidates drawn for the first batch
    int samples = 240;        // and for every later one
    double random_share = 0.06;
    int threads = 1;         // for drawing
    int patience = 2;        // rounds without progress before the next phase
    double progress = 0.01;  // less than this, as a fraction, is none
    SearchParts parts = {};
  };

  Search(Space space, target::Target target, Options options);

  // The untuned default, which races whether the space leads to it or not.
  void AddStandard(Proposal standard) { standard_ = std::move(standard); }
  // Decisions that served a relative. They have up to half of the first batch, nearest first; what finds no place there
  // comes before anything new.
  void AddRelative(space::Decisions decisions) { relatives_.push_back(std::move(decisions)); }
  // Of the workload itself, on another device or by another compiler: nearer than all others.
  void AddNearest(space::Decisions decisions) { relatives_.insert(relatives_.begin(), std::move(decisions)); }
  // What was measured in an earlier run. It is not proposed again, and evolution starts from it.
  void Remember(const space::Decisions& decisions, const std::string& schedule, std::optional<double> seconds);

  // At most `count` candidates that were never proposed, the first one the default if it was not yet; before them those
  // that wait. Fewer, or none, when the space or the search is at its end, or waits for outcomes.
  std::vector<Proposal> Propose(size_t count, const CostModel& model);
  // The outcome of a proposal; empty seconds: it failed. noise: spread of its repeats as a fraction. Of several the
  // newest counts, but none of them against what is believed after more.
  void Observe(const std::string& schedule, std::optional<double> seconds, double noise = 0);
  // What is known better than by a proposal's outcome; of one that has no time, or of which more is known, it says
  // nothing.
  void Believe(const std::string& schedule, const Belief& belief);
  // A proposal that has no outcome: its batch was lost, or there was no time. It is proposed once more only, since it
  // may be why the batch was lost.
  void Withdraw(const std::string& schedule);
  // It must not be used: whatever times it had are forgotten.
  void Condemn(const std::string& schedule);
  // Everything observed, for a cost model that is to know it under that number. Valid until the next call of a member
  // that is not const.
  void CollectSamples(int workload, std::vector<Sample>* samples) const;
  // Forgets the decisions of all but the fastest, which alone are varied: with their options, they take most of the
  // memory of what is known.
  void Shrink();

  bool converged() const { return phase_ == Phase::kDone; }
  std::optional<double> best_seconds() const;
  std::optional<Belief> Believed(const std::string& schedule) const;
  // The fastest ones, best first.
  std::vector<Proposal> Best(size_t count) const;
  size_t known() const { return known_.size(); }
  // What was looked at, and why it came to nothing.
  struct Drawn {
    int64_t all = 0;
    int64_t illegal = 0;   // no schedule
    int64_t repeated = 0;  // a schedule that was drawn or proposed before
  };
  const Drawn& drawn() const { return drawn_; }

 private:
  enum class Phase : uint8_t { kFirst, kEvolve, kDescend, kDone };
  // What to build: these decisions, the others at random (or as preferred).
  struct Draw {
    space::Decisions given;
    bool random = true;
    Origin origin = Origin::kRandom;
  };
  struct Known {
    Proposal proposal;
    bool open = false;       // proposed; the outcome is to come
    bool withdrawn = false;  // before
    bool observed = false;
    std::optional<double> seconds;
    int64_t times = 1;  // as of a Belief
    double noise = 0;
  };

  std::vector<Draw> FirstDraws();
  std::vector<Draw> EvolvedDraws();
  std::vector<Draw> Neighbours(size_t around);
  space::Decisions Mutated(const space::Decisions& parent);
  space::Decisions Crossed(const space::Decisions& a, const space::Decisions& b);
  const Known* PickParent(const std::vector<const Known*>& population);
  std::vector<const Known*> Fastest(size_t count) const;

  // Builds the draws; what is invalid, known, or drawn twice is dropped.
  std::vector<Proposal> Build(const std::vector<Draw>& draws);
  std::vector<Proposal> TakeWaiting(size_t count);
  std::vector<Proposal> ProposeNew(size_t count, const CostModel& model);
  std::vector<Proposal> FirstBatch(size_t count, const CostModel& model);
  std::vector<Proposal> EvolvedBatch(size_t count, const CostModel& model);
  // Sorted by the model, best first.
  void Rank(std::vector<Proposal>& proposals, const CostModel& model) const;
  // Says what the model expects of them in seconds. Its scores only rank: where they lie, those that were timed tell.
  void Predict(std::vector<Proposal>& proposals, const CostModel& model) const;
  void Take(std::vector<Proposal>& from, size_t count, size_t distance, std::vector<Proposal>& chosen) const;
  void UpdatePhase();
  bool HasOpen() const;

  const Space space_;
  const target::Target target_;
  const Options options_;
  Random random_;
  Phase phase_ = Phase::kFirst;
  std::optional<Proposal> standard_;
  std::vector<space::Decisions> relatives_;
  std::map<std::string, Known> known_;  // by schedule text
  std::deque<std::string> waiting_;     // schedules that go before anything new: withdrawn, or without a place before
  size_t lost_ = 0;                     // of waiting_, those in front, which were withdrawn
  double best_at_last_check_ = 0;
  int idle_rounds_ = 0;
  bool news_ = false;  // an outcome since the phase was looked at
  Drawn drawn_;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_SEARCH_H_
