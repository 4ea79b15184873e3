// SPDX-License-Identifier: Apache-2.0
// Times a package with open dimensions at several sizes, beside packages for one size each. Prints one JSON document:
//   {threads, sizes: [{name, error, open_ms, fixed_ms, ratio, first_ms, following_ms, first_ratio}],
//    memory: {runs, after_first_bytes, after_all_bytes, growth, allocations}}
// tests/bench/open/compare_sizes compiles the packages, calls this program and explains the fields.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/median.h"
#include "nlohmann/json.hpp"
#include "tests/bench/open/counted_allocations.h"
#include "tests/bench/open/loaded_model.h"
#include "tests/models/npz_file.h"

namespace hone {
namespace {

using nlohmann::ordered_json;

constexpr int kFollowingRuns = 5;  // of one size after its first run
constexpr int kTurnsMin = 5;       // turns of each package
constexpr int kRunsMin = 2;        // in a turn; the first warms the caches and is not counted
constexpr double kTurnsInTime = 20;

struct Options {
  std::string package, shapes;
  std::vector<std::string> inputs;
  int threads = 1;
  double seconds = 1;
};

models::NpzArrays ArraysOf(const std::string& path) {
  absl::StatusOr<models::NpzArrays> arrays = models::ReadNpz(path);
  if (!arrays.ok()) throw std::runtime_error(std::string(arrays.status().message()));
  return *std::move(arrays);
}

// A line has the shapes of all inputs of one run: "ids=1,37 scale=", the second of which is a scalar.
Shapes ParseShapes(const std::string& line) {
  Shapes shapes;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    std::vector<int64_t>& shape = shapes[word.substr(0, equals)];
    std::istringstream extents(word.substr(equals + 1));
    for (std::string extent; std::getline(extents, extent, ',');) shape.push_back(std::stoll(extent));
  }
  return shapes;
}

// The largest difference of two outputs as a share of the largest finite value; a huge one if only one is finite.
double ErrorOf(const Output& given, const Output& wanted) {
  if (given.shape != wanted.shape) throw std::runtime_error("output " + wanted.name + ": the shapes differ");
  double largest = 0, difference = 0;
  for (size_t e = 0; e < wanted.values.size(); ++e) {
    const double a = given.values[e], b = wanted.values[e];
    if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double apart = std::abs(a - b);
    difference = std::max(difference, std::isfinite(apart) ? apart : std::numeric_limits<double>::max());
  }
  return largest > 0 ? difference / largest : difference;
}

double LargestError(const std::vector<Output>& given, const std::vector<Output>& wanted) {
  double error = 0;
  for (size_t i = 0; i < wanted.size(); ++i) error = std::max(error, ErrorOf(given[i], wanted[i]));
  return error;
}

// The median of the runs of one turn.
double TurnMs(LoadedModel& model, double turn_seconds) {
  std::vector<double> times;
  for (double total = 0; times.size() < kRunsMin || total < 1e3 * turn_seconds;) {
    total += times.emplace_back(model.RunMs());
  }
  times.erase(times.begin());
  return Median(times);
}

// The two packages at one size, in turns.
void TimeInTurns(LoadedModel& open, LoadedModel& fixed, double seconds, ordered_json& row) {
  std::vector<double> open_ms, fixed_ms, ratios;
  const double turn_seconds = seconds / kTurnsInTime;
  double total = 0;
  while (open_ms.size() < kTurnsMin || total < 1e3 * seconds) {
    const auto start = std::chrono::steady_clock::now();
    open_ms.push_back(TurnMs(open, turn_seconds));
    fixed_ms.push_back(TurnMs(fixed, turn_seconds));
    ratios.push_back(open_ms.back() / fixed_ms.back());
    total += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  row["open_ms"] = Median(open_ms);
  row["fixed_ms"] = Median(fixed_ms);
  row["ratio"] = Median(ratios);
}

// The growth of memory over many runs with shapes of the file, after one run with the shapes of its first line.
ordered_json MeasureMemory(LoadedModel& open, const std::string& path) {
  std::ifstream file(path);
  std::vector<Shapes> shapes;
  for (std::string line; std::getline(file, line);) shapes.push_back(ParseShapes(line));
  if (shapes.empty()) throw std::runtime_error(path + " has no shapes");
  open.SetZeros(shapes[0]);
  open.Run();
  const int64_t before = ResidentBytes(), allocated = Allocations();
  for (const Shapes& each : shapes) {
    open.SetZeros(each);
    open.Run();
  }
  const int64_t allocations = Allocations() - allocated, after = ResidentBytes();
  return {{"runs", shapes.size()},
          {"after_first_bytes", before},
          {"after_all_bytes", after},
          {"growth", static_cast<double>(after - before) / static_cast<double>(before)},
          {"allocations", allocations}};
}

// The first run of a new size and those that follow. Runs of another size come right before, so that the caches are as
// warm in the first run as in the others: a small model is read from memory in the time of a few runs.
void TimeFirstRun(LoadedModel& open, const models::NpzArrays& other, const models::NpzArrays& arrays,
                  ordered_json& row) {
  open.SetInputs(other);
  for (int i = 0; i < kFollowingRuns; ++i) open.Run();
  open.SetInputs(arrays);
  row["first_ms"] = open.RunMs();
  std::vector<double> following;
  for (int i = 0; i < kFollowingRuns; ++i) following.push_back(open.RunMs());
  row["following_ms"] = Median(following);
  row["first_ratio"] = row["first_ms"].get<double>() / row["following_ms"].get<double>();
}

void CompareWithFixed(LoadedModel& open, const std::string& fixed_path, const models::NpzArrays& arrays,
                      const Options& options, ordered_json& row) {
  LoadedModel fixed(fixed_path, options.threads);
  fixed.SetInputs(arrays);
  open.SetInputs(arrays);
  fixed.Run();
  open.Run();
  row["error"] = LargestError(open.Outputs(), fixed.Outputs());
  TimeInTurns(open, fixed, options.seconds, row);
}

ordered_json Measure(const Options& options) {
  ordered_json document = {{"threads", options.threads}};
  LoadedModel open(options.package, options.threads);
  if (!options.shapes.empty()) document["memory"] = MeasureMemory(open, options.shapes);
  std::vector<models::NpzArrays> arrays;
  ordered_json& rows = document["sizes"] = ordered_json::array();
  for (const std::string& path : options.inputs) arrays.push_back(ArraysOf(path));
  for (size_t i = 0; i < arrays.size(); ++i) {
    ordered_json row = {{"name", std::filesystem::path(options.inputs[i]).stem().string()}};
    TimeFirstRun(open, arrays[i == 0 ? arrays.size() - 1 : i - 1], arrays[i], row);
    rows.push_back(row);
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    const std::string fixed = std::filesystem::path(options.inputs[i]).replace_extension(".hone").string();
    if (std::filesystem::exists(fixed)) CompareWithFixed(open, fixed, arrays[i], options, rows[i]);
  }
  return document;
}

int Main(int argc, char** argv) {
  CLI::App app("Times a package with open dimensions beside packages for one size each");
  Options options;
  app.add_option("PACKAGE", options.package, "the package with open dimensions")->required();
  app.add_option("INPUT.npz", options.inputs, "the inputs of one size; the package for it, INPUT.hone, is beside it");
  app.add_option("--shapes", options.shapes, "a file with the shapes of many runs, one a line, the largest first");
  app.add_option("--threads", options.threads, "threads that compute")->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds, "how long each size is timed")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << Measure(options).dump(1) << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "hone-time-sizes: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) { return hone::Main(argc, argv); }
