// SPDX-License-Identifier: Apache-2.0
// Rules for rotary embeddings of com.microsoft.
#include "compiler/graph/decompose/rotary.h"

#include <algorithm>

#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {

ValueId Rotate(Decomposition& b, ValueId x, ValueId positions, int64_t heads, const Rotation& rotation) {
  return b.Op("RotaryEmbedding", {x, rotation.cosines, rotation.sines, positions},
              {{"num_heads", heads},
               {"rotary_embedding_dim", 2 * b.Extent(rotation.cosines, 1)},
               {"interleaved", int64_t{rotation.interleaved}}});
}

namespace {

// The heads of x. Without attribute rotary_embedding_dim, all elements of a head are rotated, and the table of cosines
// says how many they are.
int64_t CountHeads(Decomposition& b, ValueId x, ValueId cosines) {
  const int64_t heads = b.Int("num_heads", 0);
  if (heads != 0 && b.Int("rotary_embedding_dim", 0) != 0) return heads;
  return b.Extent(x, -1) / std::max<int64_t>(2 * b.Extent(cosines, 1), 1);
}

// Inputs: x, position ids (i64[1], the position of the first, or [batch, positions]), cosines, sines.
absl::StatusOr<Values> RotaryEmbedding(Decomposition& b) {
  const ValueId x = b.Input(0);
  const Rotation rotation{b.Input(2), b.Input(3), b.Int("interleaved", 0) != 0};
  if (b.Rank(x) != 3 && b.Rank(x) != 4) return Malformed("input 0 must have 3 or 4 dimensions");
  const int64_t heads = CountHeads(b, x, rotation.cosines);
  const int64_t position_axis = b.Rank(x) == 4 ? 2 : 1;
  ValueId positions = b.Input(1);
  if (b.Rank(positions) != 2) {
    const ValueId row = b.Add(b.Positions(x, position_axis), b.Reshape(positions, {1}));
    positions = b.Expand(b.Unsqueeze(row, {0}), {b.ShapeOf(x, 0, 1), b.ShapeOf(x, position_axis, 1)});
  }
  return Values{Rotate(b, x, positions, heads, rotation)};
}

// Selects per column from the rows that three streams of positions (time, height, width) choose of a table.
// `streams` says which stream a column belongs to. Returns [batch, positions, pairs].
ValueId SelectStreams(Decomposition& b, ValueId table, ValueId positions, const std::vector<int64_t>& streams) {
  const Values rows = b.Split(b.Op("Gather", {table, positions}), 0, {1, 1, 1});
  ValueId selected = rows[0];
  for (int64_t stream : {1, 2}) {
    std::vector<double> of_stream;
    for (int64_t column : streams) of_stream.push_back(column == stream ? 1 : 0);
    const ValueId mask = b.Tensor(ir::DType::kBool, {static_cast<int64_t>(streams.size())}, of_stream);
    selected = b.Where(mask, rows[static_cast<size_t>(stream)], selected);
  }
  return b.Squeeze(selected, {0});
}

// Inputs: x, positions i64[3, batch, positions] (time, height, width), cosines, sines. Attribute mrope_section says how
// many pairs turn by each of the three: in blocks (mrope_layout 0), or every third pair, where time has the rest (1).
absl::StatusOr<Values> MRotaryEmbedding(Decomposition& b) {
  const std::vector<int64_t> sections = b.Ints("mrope_section", {});
  const int64_t pairs = b.Extent(b.Input(2), 1), layout = b.Int("mrope_layout", 0);
  const bool negative = std::ranges::any_of(sections, [](int64_t section) { return section < 0; });
  if (sections.size() != 3 || negative || sections[0] + sections[1] + sections[2] != pairs) {
    return Malformed(fmt::format("attribute mrope_section must be 3 numbers whose sum is {}", pairs));
  }
  if (layout != 0 && layout != 1)
    return Malformed(fmt::format("attribute mrope_layout is {}; it must be 0 or 1", layout));
  std::vector<int64_t> streams;
  for (int64_t column = 0; column < pairs; ++column) {
    const int64_t block = column < sections[0] ? 0 : column < sections[0] + sections[1] ? 1 : 2;
    const int64_t third = column % 3;
    streams.push_back(layout == 0 ? block : column < 3 * sections[static_cast<size_t>(third)] ? third : 0);
  }
  const ValueId cosines = SelectStreams(b, b.Input(2), b.Input(1), streams);
  const ValueId sines = SelectStreams(b, b.Input(3), b.Input(1), streams);
  return Values{b.Op("RotaryEmbedding", {b.Input(0), cosines, sines},
                     {{"num_heads", CountHeads(b, b.Input(0), b.Input(2))},
                      {"rotary_embedding_dim", 2 * pairs},
                      {"interleaved", int64_t{b.Int("interleaved", 0) != 0}}})};
}

// Inputs: angles [batch, positions, size], and q, q with its halves exchanged, k, k with its halves exchanged, each
// [batch, heads, positions, size].
absl::StatusOr<Values> GemmaRotaryEmbedding(Decomposition& b) {
  const auto angle = [&](const char* function) {
    return b.Unsqueeze(b.Cast(b.Op(function, {b.Input(0)}), b.ElementType(b.Input(1))), {1});
  };
  const ValueId cosines = angle("Cos"), sines = angle("Sin");
  const auto turned = [&](size_t x) { return b.Add(b.Mul(b.Input(x), cosines), b.Mul(b.Input(x + 1), sines)); };
  return Values{turned(1), turned(3)};
}

constexpr Row kRotaryRows[] = {
    {"GemmaRotaryEmbedding", GemmaRotaryEmbedding, 5},
    {"MRotaryEmbedding", MRotaryEmbedding, 4},
    {"RotaryEmbedding", RotaryEmbedding, 4, 23},
};

}  // namespace

std::span<const Row> RotaryRows() { return kRotaryRows; }

}  // namespace hone::graph::decompose
