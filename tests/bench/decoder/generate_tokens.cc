// SPDX-License-Identifier: Apache-2.0
// Generates tokens with the package of a language model (tests/networks/open_language.py) and times them, beside the
// bandwidth of memory. Prints one JSON document:
//   {threads, prompt, capacity, prompt_ms, token_ms, tokens_per_second, read_gbytes_per_second, in_place, tokens}
//
// token_ms is the median time of a run with one token. read_gbytes_per_second is the median rate at which as many
// threads read memory that no cache holds; the loops alternate with the tokens. in_place tells whether the caches of
// keys and values are updated in the memory of the inputs. tokens are the greedy ones, for comparison with
// tests/bench/peers/tokens_per_second.js, which prints the same names.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/median.h"
#include "deploy/runtime/hone.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone {
namespace {

constexpr size_t kReadBytes = size_t{256} << 20;  // far more than caches hold
constexpr int kTokensBetweenReads = 8;
constexpr size_t kAlignment = 64;

void Check(HoneStatus status) {
  if (status != HONE_OK) throw std::runtime_error(hone_error());
}

double MillisecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Memory on a multiple of kAlignment, filled with zeros.
class Memory {
 public:
  explicit Memory(size_t bytes)
      : bytes_((bytes + kAlignment - 1) / kAlignment * kAlignment), data_(std::aligned_alloc(kAlignment, bytes_)) {
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_, 0, bytes_);
  }
  Memory(Memory&& other) noexcept : bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
  Memory& operator=(Memory&&) = delete;
  ~Memory() { std::free(data_); }
  void* data() const { return data_; }

 private:
  size_t bytes_;
  void* data_;
};

// Reads memory with several threads and reports the rate.
class Reader {
 public:
  explicit Reader(int threads) : memory_(kReadBytes), threads_(static_cast<size_t>(threads)) {}

  // In GB/s.
  double Rate() {
    std::vector<uint64_t> sums(threads_);
    const double ms = MillisecondsOf([&] {
      std::vector<std::thread> others;
      for (size_t t = 1; t < threads_; ++t) others.emplace_back([&, t] { sums[t] = Sum(t); });
      sums[0] = Sum(0);
      for (std::thread& other : others) other.join();
    });
    if (std::reduce(sums.begin(), sums.end()) != 0) throw std::runtime_error("memory changed");
    return static_cast<double>(kReadBytes) / ms / 1e6;
  }

 private:
  uint64_t Sum(size_t thread) const {
    const size_t count = kReadBytes / sizeof(uint64_t), share = count / threads_;
    const auto* first = static_cast<const uint64_t*>(memory_.data()) + thread * share;
    return std::reduce(first, first + share, uint64_t{0});
  }

  Memory memory_;
  size_t threads_;
};

struct Options {
  std::string package;
  int threads = 2, prompt = 32, tokens = 64;
  bool copied = false;
};

// A loaded model and its caches of keys and values.
class Generator {
 public:
  explicit Generator(const Options& options) {
    const HoneLoadOptions load = {sizeof(HoneLoadOptions), options.threads, 0};
    Check(hone_load(options.package.c_str(), &load, &model_));
    ids_ = InputNamed("input_ids");
    mask_ = InputNamed("attention_mask");
    logits_ = OutputNamed("logits");
    for (size_t i = 0; i < hone_input_count(model_); ++i) {
      const std::string name = InputOf(i).name;
      if (name.starts_with("past_key_values.")) AddCache(i, "present" + name.substr(15), options.copied);
    }
  }
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  ~Generator() { hone_free(model_); }

  bool in_place() const {
    return std::ranges::all_of(caches_, [](const Cache& cache) { return cache.memory.size() == 1; });
  }
  int64_t capacity() const { return caches_.empty() ? 0 : InputOf(caches_[0].input).shape[2]; }

  // Runs the tokens and returns the most likely next one. *ms is the time of the run.
  int64_t Next(const std::vector<int64_t>& tokens, double* ms) {
    length_ += static_cast<int64_t>(tokens.size());
    std::vector<int64_t> mask(static_cast<size_t>(length_), 1);
    SetInts(ids_, tokens);
    SetInts(mask_, mask);
    for (Cache& cache : caches_) Bind(cache);
    *ms = MillisecondsOf([&] { Check(hone_run(model_)); });
    DLTensor view;
    Check(hone_get_output(model_, logits_, &view));
    const int64_t words = view.shape[2];
    const auto* last = static_cast<const float*>(view.data) + (view.shape[1] - 1) * words;
    return std::max_element(last, last + words) - last;
  }

 private:
  struct Cache {
    size_t input, output;
    std::vector<Memory> memory;  // one if the update is in place; else two that take turns
    size_t turn = 0;
  };

  HonePort InputOf(size_t index) const {
    HonePort port;
    Check(hone_input(model_, index, &port));
    return port;
  }

  size_t InputNamed(const std::string& name) const {
    for (size_t i = 0; i < hone_input_count(model_); ++i) {
      if (InputOf(i).name == name) return i;
    }
    throw std::runtime_error("the model has no input " + name);
  }

  size_t OutputNamed(const std::string& name) const {
    for (size_t i = 0; i < hone_output_count(model_); ++i) {
      HonePort port;
      Check(hone_output(model_, i, &port));
      if (port.name == name) return i;
    }
    throw std::runtime_error("the model has no output " + name);
  }

  void AddCache(size_t input, const std::string& present, bool copied) {
    Cache cache{input, OutputNamed(present), {}};
    const bool in_place = !copied && hone_updated_input(model_, cache.output) == static_cast<int64_t>(input);
    for (int i = 0; i < (in_place ? 1 : 2); ++i) cache.memory.emplace_back(InputOf(input).bytes);
    caches_.push_back(std::move(cache));
  }

  void Bind(Cache& cache) {
    const HonePort port = InputOf(cache.input);
    DLTensor tensor = {cache.memory[cache.turn].data(),  {kDLCPU, 0}, port.ndim, port.dtype,
                       const_cast<int64_t*>(port.shape), nullptr,     0};
    Check(hone_bind_input(model_, cache.input, &tensor));
    cache.turn = (cache.turn + 1) % cache.memory.size();
    tensor.data = cache.memory[cache.turn].data();
    Check(hone_bind_output(model_, cache.output, &tensor));
  }

  void SetInts(size_t input, const std::vector<int64_t>& values) {
    int64_t shape[] = {1, static_cast<int64_t>(values.size())};
    const DLTensor tensor = {const_cast<int64_t*>(values.data()), {kDLCPU, 0}, 2, {kDLInt, 64, 1}, shape, nullptr, 0};
    Check(hone_set_input(model_, input, &tensor));
  }

  HoneModel* model_ = nullptr;
  size_t ids_ = 0, mask_ = 0, logits_ = 0;
  std::vector<Cache> caches_;
  int64_t length_ = 0;  // tokens in the caches
};

void Generate(const Options& options) {
  Generator generator(options);
  Reader reader(options.threads);
  std::vector<int64_t> given(static_cast<size_t>(options.prompt)), tokens;
  std::iota(given.begin(), given.end(), 1);
  std::vector<double> times, rates;
  double prompt_ms = 0;
  for (int i = 0; i <= options.tokens; ++i) {
    if (i % kTokensBetweenReads == 0) rates.push_back(reader.Rate());
    double ms = 0;
    given = {generator.Next(given, &ms)};
    (i == 0 ? prompt_ms : times.emplace_back()) = ms;
    tokens.push_back(given[0]);
  }
  const double token_ms = Median(times);
  fmt::print(R"({{"threads": {}, "prompt": {}, "capacity": {}, "prompt_ms": {:.3f}, "token_ms": {:.4f}, )"
             R"("tokens_per_second": {:.1f}, "read_gbytes_per_second": {:.2f}, "in_place": {}, "tokens": [{}]}})"
             "\n",
             options.threads, options.prompt, generator.capacity(), prompt_ms, token_ms, 1e3 / token_ms, Median(rates),
             generator.in_place(), fmt::join(tokens, ", "));
}

int Main(int argc, char** argv) {
  CLI::App app("Generates tokens with the package of a language model and times them");
  Options options;
  app.add_option("PACKAGE", options.package, "the package, as hone compile writes it")->required();
  app.add_option("--threads", options.threads, "threads that compute")->check(CLI::PositiveNumber);
  app.add_option("--prompt", options.prompt, "tokens of the prompt: 1, 2, 3 ...")->check(CLI::PositiveNumber);
  app.add_option("--tokens", options.tokens, "how many are generated")->check(CLI::PositiveNumber);
  app.add_flag("--copied", options.copied, "other memory for the outputs of the caches than for their inputs");
  CLI11_PARSE(app, argc, argv);
  try {
    Generate(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "hone-generate-tokens: {}\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) { return hone::Main(argc, argv); }
