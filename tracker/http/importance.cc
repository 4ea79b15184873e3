// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "base/median.h"

namespace hone::tracker {
namespace {

constexpr size_t kDecisionsMax = 64, kValuesMax = 64;
// A search makes some dozen decisions, but a record may contain any text: at most so many words of a trial are read,
// and at most so many names of all trials are considered.
constexpr size_t kWordsMax = 256, kNamesMax = 256;

// Calls take(name, value) for each word "name=value".
template <typename Take>
void ForEachDecision(std::string_view decisions, Take take) {
  for (size_t words = 0; words < kWordsMax && !decisions.empty(); ++words) {
    const size_t end = std::min(decisions.find(' '), decisions.size());
    const std::string_view word = decisions.substr(0, end);
    decisions.remove_prefix(std::min(end + 1, decisions.size()));
    const size_t equals = word.find('=');
    if (equals != std::string_view::npos) take(word.substr(0, equals), word.substr(equals + 1));
  }
}

// The names that occur in most trials, each with an index.
std::map<std::string_view, size_t> NamesIn(const std::vector<Trial>& trials) {
  std::map<std::string_view, int64_t> counts;
  for (const Trial& trial : trials) {
    ForEachDecision(trial.decisions, [&counts](std::string_view name, std::string_view) { ++counts[name]; });
  }
  std::vector<std::pair<std::string_view, int64_t>> most(counts.begin(), counts.end());
  std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (most.size() > kNamesMax) most.resize(kNamesMax);
  std::map<std::string_view, size_t> names;
  for (const auto& [name, count] : most) names[name] = 0;
  size_t number = 0;
  for (auto& [name, at] : names) at = number++;
  return names;
}

// The value of each trial, by index of the name and index of the trial; "" where the trial has no such decision.
std::vector<std::vector<std::string_view>> DecidedIn(const std::vector<Trial>& trials,
                                                     const std::map<std::string_view, size_t>& names) {
  std::vector<std::vector<std::string_view>> decided(names.size(), std::vector<std::string_view>(trials.size()));
  for (size_t i = 0; i < trials.size(); ++i) {
    ForEachDecision(trials[i].decisions, [&](std::string_view name, std::string_view value) {
      if (const auto known = names.find(name); known != names.end()) decided[known->second][i] = value;
    });
  }
  return decided;
}

// The logarithms of the times, minus the mean of those with the same key.
std::vector<double> Centered(const std::vector<Trial>& trials) {
  std::map<std::string, std::pair<double, double>> sums;  // by key: sum, count
  for (const Trial& trial : trials) {
    auto& [sum, count] = sums[trial.key];
    sum += std::log(trial.seconds);
    ++count;
  }
  std::vector<double> centered;
  for (const Trial& trial : trials) {
    const auto& [sum, count] = sums[trial.key];
    centered.push_back(std::log(trial.seconds) - sum / count);
  }
  return centered;
}

using Groups = std::map<std::string_view, std::vector<size_t>>;  // value to the indices of its trials

double ShareOf(const Groups& groups, const std::vector<double>& centered) {
  double total = 0, between = 0;
  for (const double value : centered) total += value * value;
  for (const auto& [value, members] : groups) {
    double sum = 0;
    for (const size_t i : members) sum += centered[i];
    between += sum * sum / static_cast<double>(members.size());
  }
  const auto trials = static_cast<double>(centered.size()), values = static_cast<double>(groups.size());
  if (trials <= values || total <= 0) return 0;
  const double by_chance = std::max(0.0, total - between) / (trials - values);
  return std::clamp((between - (values - 1) * by_chance) / (total + by_chance), 0.0, 1.0);
}

std::vector<DecisionValue> ValuesOf(const Groups& groups, const std::vector<Trial>& trials) {
  std::vector<DecisionValue> values;
  for (const auto& [value, members] : groups) {
    std::vector<double> seconds;
    for (const size_t i : members) seconds.push_back(trials[i].seconds);
    values.push_back({std::string(value), static_cast<int64_t>(members.size()),
                      *std::min_element(seconds.begin(), seconds.end()), Median(seconds)});
  }
  std::sort(values.begin(), values.end(),
            [](const DecisionValue& a, const DecisionValue& b) { return a.best_seconds < b.best_seconds; });
  if (values.size() > kValuesMax) values.resize(kValuesMax);
  return values;
}

}  // namespace

std::vector<DecisionImportance> ImportanceOf(const std::vector<Trial>& trials) {
  const std::map<std::string_view, size_t> names = NamesIn(trials);
  const std::vector<std::vector<std::string_view>> decided = DecidedIn(trials, names);
  const std::vector<double> centered = Centered(trials);
  std::vector<DecisionImportance> all;
  for (const auto& [name, number] : names) {
    Groups groups;
    for (size_t i = 0; i < trials.size(); ++i) groups[decided[number][i]].push_back(i);
    all.push_back({std::string(name), ShareOf(groups, centered), ValuesOf(groups, trials)});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  if (all.size() > kDecisionsMax) all.resize(kDecisionsMax);
  return all;
}

}  // namespace hone::tracker
