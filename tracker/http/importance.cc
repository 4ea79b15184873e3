#include "tracker/http/importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "base/median.h"

namespace hone::tracker {
namespace {

constexpr size_t kMostDecisions = 64, kMostValues = 64;

std::map<std::string, std::string> Parse(std::string_view decisions) {
  std::map<std::string, std::string> values;
  while (!decisions.empty()) {
    const size_t end = std::min(decisions.find(' '), decisions.size());
    const std::string_view word = decisions.substr(0, end);
    decisions.remove_prefix(std::min(end + 1, decisions.size()));
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    values[std::string(word.substr(0, equals))] = std::string(word.substr(equals + 1));
  }
  return values;
}

// Logarithms of the times, from the mean of those of the same key.
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

using Groups = std::map<std::string, std::vector<size_t>>;  // by value: which trials have it

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
    values.push_back({value, static_cast<int64_t>(members.size()), *std::min_element(seconds.begin(), seconds.end()),
                      Median(seconds)});
  }
  std::sort(values.begin(), values.end(),
            [](const DecisionValue& a, const DecisionValue& b) { return a.best_seconds < b.best_seconds; });
  if (values.size() > kMostValues) values.resize(kMostValues);
  return values;
}

}  // namespace

std::vector<DecisionImportance> ImportanceOf(const std::vector<Trial>& trials) {
  std::vector<std::map<std::string, std::string>> decided;
  std::set<std::string> names;
  for (const Trial& trial : trials) {
    for (const auto& [name, value] : decided.emplace_back(Parse(trial.decisions))) names.insert(name);
  }
  const std::vector<double> centered = Centered(trials);
  std::vector<DecisionImportance> all;
  for (const std::string& name : names) {
    Groups groups;
    for (size_t i = 0; i < trials.size(); ++i) {
      const auto found = decided[i].find(name);
      groups[found == decided[i].end() ? "" : found->second].push_back(i);
    }
    all.push_back({name, ShareOf(groups, centered), ValuesOf(groups, trials)});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  if (all.size() > kMostDecisions) all.resize(kMostDecisions);
  return all;
}

}  // namespace hone::tracker
