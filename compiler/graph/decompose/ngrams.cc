// SPDX-License-Identifier: Apache-2.0
// Rule for TfIdfVectorizer of numbers: how often short lists of numbers occur in a row.
#include <algorithm>
#include <string>

#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

// The most elements of the table that moves counts to their columns: 2^26 doubles are 512 MiB.
constexpr int64_t kTableElementsMax = int64_t{1} << 26;

// The n-grams of one length.
struct Ngrams {
  int64_t length = 1;
  std::vector<int64_t> numbers;  // one n-gram after the other
  int64_t count() const { return static_cast<int64_t>(numbers.size()) / length; }
};

// The n-grams of the pool by length, from 1 on. ngram_counts says where each length begins.
absl::StatusOr<std::vector<Ngrams>> ReadPool(Decomposition& b) {
  const std::vector<int64_t> pool = b.Ints("pool_int64s", {}), begins = b.Ints("ngram_counts", {});
  const auto size = static_cast<int64_t>(pool.size());
  std::vector<Ngrams> result;
  for (size_t i = 0; i < begins.size(); ++i) {
    Ngrams ngrams{.length = static_cast<int64_t>(i) + 1, .numbers = {}};
    const int64_t begin = begins[i], end = i + 1 < begins.size() ? begins[i + 1] : size;
    if (begin < 0 || end < begin || end > size || (end - begin) % ngrams.length != 0) {
      return Malformed("attribute ngram_counts does not fit the pool");
    }
    ngrams.numbers.assign(pool.begin() + begin, pool.begin() + end);
    result.push_back(std::move(ngrams));
  }
  return result;
}

// f32[rows, n-grams]: how often each occurs in a row of x, if its numbers are `distance` apart. x: i64[rows, length].
ValueId CountAt(Decomposition& b, ValueId x, const Ngrams& ngrams, int64_t distance) {
  const int64_t starts = b.Extent(x, 1) - distance * (ngrams.length - 1);
  if (starts <= 0) return kAbsent;
  ValueId matches = kAbsent;
  for (int64_t k = 0; k < ngrams.length; ++k) {
    std::vector<double> numbers;
    for (int64_t g = 0; g < ngrams.count(); ++g) {
      numbers.push_back(static_cast<double>(ngrams.numbers[static_cast<size_t>(g * ngrams.length + k)]));
    }
    const ValueId here = b.Unsqueeze(b.Slice(x, 1, k * distance, k * distance + starts), {1});
    const ValueId equal = b.Op("Equal", {here, b.Tensor(DType::kInt64, {ngrams.count(), 1}, numbers)});
    matches = matches == kAbsent ? equal : b.Op("And", {matches, equal});
  }
  return b.Op("ReduceSum", {b.Cast(matches, DType::kFloat32), b.List({2})}, {{"keepdims", int64_t{0}}});
}

ValueId CountAll(Decomposition& b, ValueId x, const Ngrams& ngrams) {
  const int64_t distances = ngrams.length == 1 ? 1 : std::min(b.Int("max_skip_count", 0), kDimensionMax) + 1;
  ValueId sum = kAbsent;
  for (int64_t distance = 1; distance <= distances; ++distance) {
    const ValueId counts = CountAt(b, x, ngrams, distance);
    if (counts == kAbsent) break;
    sum = sum == kAbsent ? counts : b.Add(sum, counts);
  }
  return sum;
}

// Input: numbers [length] or [rows, length]. Output: f32, a column per n-gram as ngram_indexes says.
absl::StatusOr<Values> TfIdfVectorizer(Decomposition& b) {
  if (b.HasAttribute("pool_strings")) return Unsupported("strings are not supported");
  HONE_ASSIGN_OR_RETURN(const std::vector<Ngrams> pool, ReadPool(b));
  const std::vector<int64_t> indexes = b.Ints("ngram_indexes", {});
  const std::string mode = b.String("mode", "TF");
  const bool is_list = b.Rank(b.Input(0)) == 1;
  const ValueId wide = b.Cast(b.Input(0), DType::kInt64), x = is_list ? b.Unsqueeze(wide, {0}) : wide;
  if (indexes.empty() || *std::ranges::min_element(indexes) < 0) return Malformed("attribute ngram_indexes is wrong");
  const int64_t last = *std::ranges::max_element(indexes);
  if (last >= kTableElementsMax) return Unsupported("its table of n-grams is too large");
  const int64_t columns = last + 1;
  const std::vector<double> weights = b.Floats("weights", std::vector<double>(static_cast<size_t>(columns), 1));
  Values counted;
  std::vector<int64_t> places;  // per counted n-gram its column
  size_t next = 0;
  for (const Ngrams& ngrams : pool) {
    const size_t first = next;
    next += static_cast<size_t>(ngrams.count());
    if (next > indexes.size()) return Malformed("attribute ngram_indexes has too few numbers");
    const bool counts = ngrams.length >= b.Int("min_gram_length", 1) && ngrams.length <= b.Int("max_gram_length", 1);
    if (!counts || ngrams.count() == 0) continue;
    const ValueId sum = CountAll(b, x, ngrams);
    if (sum == kAbsent) continue;
    counted.push_back(sum);
    places.insert(places.end(), indexes.begin() + static_cast<std::ptrdiff_t>(first),
                  indexes.begin() + static_cast<std::ptrdiff_t>(next));
  }
  if (counted.empty()) return Unsupported("its input is too short for the n-grams, so that all counts are 0");
  if (static_cast<int64_t>(weights.size()) < columns) return Malformed("attribute weights has too few numbers");
  if (static_cast<int64_t>(places.size()) > kTableElementsMax / columns) {
    return Unsupported("its table of n-grams is too large");
  }
  std::vector<double> to_columns(places.size() * static_cast<size_t>(columns), 0);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto column = static_cast<size_t>(places[i]);
    to_columns[i * static_cast<size_t>(columns) + column] = mode == "TF" ? 1 : weights[column];
  }
  ValueId counts = b.Concat(counted, 1);
  if (mode == "IDF") counts = b.Op("Min", {counts, b.Number(DType::kFloat32, 1)});
  const ValueId result =
      b.MatMul(counts, b.Tensor(DType::kFloat32, {static_cast<int64_t>(places.size()), columns}, to_columns));
  return Values{is_list ? b.Squeeze(result, {0}) : result};
}

constexpr Row kNgramRows[] = {{"TfIdfVectorizer", TfIdfVectorizer}};

}  // namespace

std::span<const Row> NgramRows() { return kNgramRows; }

}  // namespace hone::graph::decompose
