// SPDX-License-Identifier: Apache-2.0
// hone-time-libraries times operators in oneDNN and OpenBLAS. It reads one request per line and answers each with a
// line:
//   {"model": "x.onnx", "input": "x.npz", "seconds": 0.2, "output": "PREFIX"}
//   {"ms": {"onednn_plain": .., "onednn_reordered": .., "onednn_own_layout": .., "openblas": ..}}    or {"error": ".."}
// ms: median time of a run, over as many runs as the time permits; only for the ways that a library has
// (library_ways.h). output (optional): writes the result of each way to PREFIX.WAY.npz. Consecutive requests for the
// same model are set up once. compare_operators.js starts this program with OMP_NUM_THREADS and OPENBLAS_NUM_THREADS.
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/median.h"
#include "base/status.h"
#include "tests/bench/operators/library_ways.h"
#include "tests/bench/operators/onnx_operator.h"
#include "tests/models/npz_file.h"

namespace hone::models {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr size_t kRunsMin = 5;

double MedianMs(const std::function<void()>& run, double seconds) {
  run();  // warm up
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point start = begin;
       times.size() < kRunsMin || std::chrono::duration<double>(start - begin).count() < seconds;) {
    run();
    const Clock::time_point end = Clock::now();
    times.push_back(std::chrono::duration<double, std::milli>(end - start).count());
    start = end;
  }
  return Median(std::move(times));
}

struct Prepared {
  std::string model;
  std::string output;  // name of the output
  std::vector<float> x;
  std::vector<LibraryOperator> libraries;
};

absl::StatusOr<std::vector<float>> ReadInput(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const NpzArrays arrays, ReadNpz(path));
  if (arrays.size() != 1 || arrays.begin()->second.descr != "<f4") {
    return absl::InvalidArgumentError(path + ": is not one f32 array");
  }
  const std::vector<std::byte>& bytes = arrays.begin()->second.bytes;
  std::vector<float> x(bytes.size() / sizeof(float));
  std::memcpy(x.data(), bytes.data(), bytes.size());
  return x;
}

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(const std::string& model, const std::string& input) {
  auto prepared = std::make_unique<Prepared>();
  prepared->model = model;
  HONE_ASSIGN_OR_RETURN(const OnnxOperator op, ReadOperator(model));
  prepared->output = op.output;
  HONE_ASSIGN_OR_RETURN(prepared->x, ReadInput(input));
  if (static_cast<int64_t>(prepared->x.size()) != ElementsOf(op.shape)) {
    return absl::InvalidArgumentError(input + ": is not of the shape that the model wants");
  }
  HONE_ASSIGN_OR_RETURN(LibraryOperator onednn, MakeOneDnn(op, prepared->x));
  prepared->libraries.push_back(std::move(onednn));
  prepared->libraries.push_back(MakeOpenBlas(op, prepared->x));
  return prepared;
}

absl::Status WriteOutput(const Prepared& prepared, const LibraryOperator& library, const std::string& path) {
  NpyArray array{"<f4", library.shape, std::vector<std::byte>(library.output.size() * sizeof(float))};
  std::memcpy(array.bytes.data(), library.output.data(), array.bytes.size());
  return WriteNpz(path, {{prepared.output, std::move(array)}});
}

absl::StatusOr<json> Answer(const json& request, std::unique_ptr<Prepared>& prepared) {
  const std::string model = request.at("model");
  if (prepared == nullptr || prepared->model != model) {
    prepared = nullptr;
    HONE_ASSIGN_OR_RETURN(prepared, Prepare(model, request.at("input")));
  }
  json ms = json::object();
  for (const LibraryOperator& library : prepared->libraries) {
    for (const Way& way : library.ways) {
      ms[way.name] = MedianMs(way.run, request.at("seconds"));
      if (!request.contains("output") || !way.writes_output) continue;
      const std::string path = request["output"].get<std::string>() + "." + way.name + ".npz";
      HONE_RETURN_IF_ERROR(WriteOutput(*prepared, library, path));
    }
  }
  return json{{"ms", std::move(ms)}};
}

int Serve() {
  std::unique_ptr<Prepared> prepared;
  for (std::string line; std::getline(std::cin, line);) {
    const json request = json::parse(line, nullptr, false);
    if (!request.is_object() || !request.contains("model") || !request.contains("input") ||
        !request.contains("seconds")) {
      std::cerr << "hone-time-libraries: a request is {\"model\": .., \"input\": .., \"seconds\": ..}\n";
      return 2;
    }
    const absl::StatusOr<json> answer = Answer(request, prepared);
    const json said = answer.ok() ? *answer : json{{"error", std::string(answer.status().message())}};
    std::cout << said.dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace hone::models

int main() { return hone::models::Serve(); }
