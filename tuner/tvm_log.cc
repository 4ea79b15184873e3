// SPDX-License-Identifier: Apache-2.0
#include "tuner/tvm_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "base/status.h"
#include "nlohmann/json.hpp"

namespace hone::tuner {
namespace {

using nlohmann::json;

constexpr size_t kLogLineBytesMax = size_t{16} << 20;
constexpr int64_t kExtentMax = int64_t{1} << 31;
constexpr double kOutputPointsMax = 0x1p62;  // product of the extents of all output loops
constexpr double kRunSecondsMax = 1e9;       // MetaSchedule writes 1e10 seconds for a failure

// At and Member return an element or a member; null if it is missing, or `value` is no array or object.
const json& At(const json& value, size_t index) {
  static const json kNull;
  return value.is_array() && index < value.size() ? value[index] : kNull;
}
const json& Member(const json& value, const char* name) {
  static const json kNull;
  const auto found = value.is_object() ? value.find(name) : value.end();
  return value.is_object() && found != value.end() ? *found : kNull;
}

std::optional<std::vector<int64_t>> Numbers(const json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const json& number : value) {
    if (!number.is_number_integer()) return std::nullopt;
    numbers.push_back(number.get<int64_t>());
    if (numbers.back() < -1 || numbers.back() > kExtentMax) return std::nullopt;
  }
  return numbers;
}

absl::Status Unread(std::string_view why) { return absl::InvalidArgumentError(std::string(why)); }

// The mean time of a schedule's runs; nullopt: it failed.
absl::StatusOr<std::optional<double>> SecondsOf(const json& costs, const json& error) {
  if (!costs.is_array() || costs.empty()) return Unread("its times are missing");
  double sum = 0;
  for (const json& cost : costs) {
    if (!cost.is_number()) return Unread("its times are not numbers");
    sum += cost.get<double>();
  }
  const double seconds = sum / static_cast<double>(costs.size());
  const bool failed =
      (error.is_number_integer() && error.get<int64_t>() != 0) || seconds <= 0 || seconds >= kRunSecondsMax;
  return failed ? std::nullopt : std::optional(seconds);
}

// The product, or the largest int64_t if it is larger.
int64_t Product(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::numeric_limits<int64_t>::max();
  }
  return product;
}

// The inner tile by a knob's factors: on a CPU the iterations of the innermost loop, on a GPU those of one thread. Four
// factors are a GPU's: groups, virtual threads, threads, inner loop.
int64_t InnerOf(const std::vector<int64_t>& factors) {
  return factors.size() == 4 ? Product({factors[1], factors[3]}) : factors.back();
}

class Knobs {
 public:
  explicit Knobs(const json& entity) : entity_(entity) {}

  // The inner tile by the first of the named knobs that exists; 1 if none does. A knob's value is a list of factors
  // ("sp") or a number ("ot").
  int64_t Inner(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      for (const json& knob : entity_) {
        if (!At(knob, 0).is_string() || At(knob, 0).get_ref<const std::string&>() != name) continue;
        const std::optional<std::vector<int64_t>> factors = Numbers(At(knob, 2));
        if (factors.has_value() && !factors->empty()) return InnerOf(*factors);
        if (At(knob, 2).is_number_integer()) return At(knob, 2).get<int64_t>();
      }
    }
    return 1;
  }

 private:
  const json& entity_;
};

// The shape of the tensor argument `index`; nullopt if it is none of this rank.
std::optional<std::vector<int64_t>> ShapeOf(const json& args, size_t index, size_t rank) {
  const json& tensor = At(args, index);
  if (At(tensor, 0) != "TENSOR") return std::nullopt;
  std::optional<std::vector<int64_t>> shape = Numbers(At(tensor, 1));
  const bool whole = shape.has_value() && shape->size() == rank &&
                     std::all_of(shape->begin(), shape->end(), [](int64_t extent) { return extent > 0; });
  return whole ? shape : std::nullopt;
}

// A parameter's number for an axis (0 or 1): the value is one number for both axes, or a list with one for each.
// Returns `otherwise` if it is null, nullopt if it is anything else.
std::optional<int64_t> Along(const json& value, size_t axis, int64_t otherwise) {
  if (value.is_null()) return otherwise;
  const std::optional<std::vector<int64_t>> numbers = Numbers(value.is_array() ? value : json::array({value}));
  if (!numbers.has_value() || numbers->empty()) return std::nullopt;
  const int64_t number = (*numbers)[std::min(axis, numbers->size() - 1)];
  return number >= 0 ? std::optional(number) : std::nullopt;
}

// The sum of the padding at both ends of an axis. The value is as in Along, for each end, or a list of top, left,
// bottom, right.
std::optional<int64_t> Padding(const json& padding, size_t axis) {
  const bool sides = padding.is_array() && padding.size() == 4;
  const std::optional<int64_t> before = Along(padding, axis, 0), after = Along(padding, sides ? axis + 2 : axis, 0);
  return before.has_value() && after.has_value() ? std::optional(*before + *after) : std::nullopt;
}

// The extents of a convolution's loops. A task's arguments are data, weights, strides, padding, dilation.
struct Convolution {
  int64_t batch, rows, columns, channels, window_rows, window_columns, inputs;
};

std::optional<Convolution> ConvolutionOf(const json& args, bool channels_last, bool depthwise) {
  const auto data = ShapeOf(args, 0, 4), weights = ShapeOf(args, 1, 4);
  if (!data.has_value() || !weights.has_value()) return std::nullopt;
  const std::vector<int64_t>&d = *data, &w = *weights;
  // Weights: outputs, inputs, rows, columns; channels last: rows, columns, inputs, outputs. Depthwise, they are
  // channels and multipliers.
  Convolution c = channels_last ? Convolution{d[0], d[1], d[2], depthwise ? w[2] * w[3] : w[3], w[0], w[1], w[2]}
                                : Convolution{d[0], d[2], d[3], depthwise ? w[0] * w[1] : w[0], w[2], w[3], w[1]};
  if (depthwise) c.inputs = 1;
  // The extent of the output along an axis; 0: the arguments are invalid.
  const auto output = [&](int64_t extent, int64_t window, size_t axis) -> int64_t {
    const std::optional<int64_t> stride = Along(At(args, 2), axis, 1), padding = Padding(At(args, 3), axis),
                                 dilation = Along(At(args, 4), axis, 1);
    if (stride.value_or(0) < 1 || !padding.has_value() || dilation.value_or(0) < 1) return 0;
    const int64_t last = extent + *padding - *dilation * (window - 1) - 1;  // where the last window may begin
    return last < 0 ? 0 : last / *stride + 1;
  };
  c.rows = output(c.rows, c.window_rows, 0);
  c.columns = output(c.columns, c.window_columns, 1);
  return c.rows > 0 && c.columns > 0 ? std::optional(c) : std::nullopt;
}

absl::StatusOr<TiledTask> ReadConvolution(const json& args, const Knobs& knobs, bool channels_last, bool depthwise) {
  const std::optional<Convolution> c = ConvolutionOf(args, channels_last, depthwise);
  if (!c.has_value()) return Unread("its arguments are not those of a 2-D convolution on four dimensions");
  TiledTask task;
  task.output = {{c->batch, 1},
                 {c->rows, knobs.Inner({"tile_oh", "tile_y"})},
                 {c->columns, knobs.Inner({"tile_ow", "tile_x"})},
                 {c->channels, knobs.Inner({"tile_oc", "tile_co", "tile_f", "tile_c"})}};
  task.reduction = {c->inputs, c->window_rows, c->window_columns};
  return task;
}

absl::StatusOr<TiledTask> ReadProduct(const json& args, const Knobs& knobs, size_t rank) {
  const auto a = ShapeOf(args, 0, rank), b = ShapeOf(args, 1, rank);
  if (!a.has_value() || !b.has_value()) {
    return Unread("its arguments are not those of a matrix product: the columns of both matrices are reduced over");
  }
  TiledTask task;
  if (rank == 3) task.output.push_back({a->front(), 1});
  task.output.push_back({(*a)[rank - 2], knobs.Inner({"tile_y"})});
  task.output.push_back({(*b)[rank - 2], knobs.Inner({"tile_x"})});
  task.reduction = {a->back()};
  return task;
}

absl::StatusOr<TiledTask> ReadAutoTvm(const json& line) {
  const json& input = Member(line, "input");
  if (!At(input, 1).is_string()) return Unread("its task has no name");
  const std::string& name = At(input, 1).get_ref<const std::string&>();
  const json& args = At(input, 2);
  const json& entity = Member(Member(line, "config"), "entity");
  if (!entity.is_array()) return Unread("its configuration has no entity");
  const Knobs knobs(entity);
  const std::string_view kind = std::string_view(name).substr(0, name.find('.'));
  static const std::set<std::string_view> kConvolutions = {
      "conv2d", "conv2d_NCHWc", "conv2d_nchw", "conv2d_nhwc", "conv2d_nchw_spatial_pack", "conv2d_nhwc_spatial_pack"};
  static const std::set<std::string_view> kProducts = {"dense", "dense_pack", "dense_nopack", "dense_small_batch",
                                                       "dense_large_batch"};
  constexpr std::string_view kDepthwise = "depthwise_";
  const bool depthwise = kind.starts_with(kDepthwise);
  const std::string_view plain = depthwise ? kind.substr(kDepthwise.size()) : kind;
  if (kConvolutions.contains(plain))
    return ReadConvolution(args, knobs, plain.find("nhwc") != std::string_view::npos, depthwise);
  if (kProducts.contains(kind)) return ReadProduct(args, knobs, 2);
  if (kind == "batch_matmul") return ReadProduct(args, knobs, 3);
  return Unread(fmt::format("hone knows no tiles for task '{}'", name));
}

// Loops are told apart by their levels. Output loops have four levels on a CPU and five on a GPU (groups, virtual
// threads, threads, two inner loops). Reduction loops have two on a CPU and three on a GPU.
bool IsOutput(size_t levels) { return levels == 4 || levels == 5; }
bool IsReduction(size_t levels) { return levels == 2 || levels == 3; }

int64_t InnerOfLevels(const std::vector<int64_t>& factors) {
  return factors.size() == 5 ? Product({factors[1], factors[3], factors[4]}) : factors.back();
}

void AddLoop(int64_t extent, const std::vector<int64_t>& factors, TiledTask& task) {
  if (IsOutput(factors.size())) task.output.push_back({extent, InnerOfLevels(factors)});
  if (IsReduction(factors.size())) task.reduction.push_back(extent);
}

// Reads the splits among a record's steps: ["SP", stage, loop, extent, [factors of the inner loops], inner first]. The
// tiled stage is the first one with a loop that is split into the levels of an output loop.
absl::StatusOr<TiledTask> ReadAnsor(const json& line) {
  const json& steps = At(At(Member(line, "i"), 1), 1);
  if (!steps.is_array()) return Unread("it has no steps");
  TiledTask task;
  std::optional<int64_t> tiled;
  for (const json& step : steps) {
    if (At(step, 0) != "SP" || !At(step, 1).is_number_integer() || !At(step, 3).is_number_integer()) continue;
    std::optional<std::vector<int64_t>> factors = Numbers(At(step, 4));
    if (!factors.has_value()) continue;
    factors->insert(factors->begin(), 1);  // stands for the outermost loop, whose factor is not listed
    const auto stage = At(step, 1).get<int64_t>();
    if (!tiled.has_value() && IsOutput(factors->size())) tiled = stage;
    if (tiled == stage) AddLoop(At(step, 3).get<int64_t>(), *factors, task);
  }
  if (!tiled.has_value()) return Unread("no stage of it is tiled in several levels");
  return task;
}

// Reads a record: [task, [[instructions, [[instruction, decision]...]], run_secs, target, arguments]].
absl::StatusOr<TiledTask> ReadMetaSchedule(const json& line) {
  const json& trace = At(At(line, 1), 0);
  const json& instructions = At(trace, 0);
  TiledTask task;
  for (const json& decision : At(trace, 1)) {
    if (!At(decision, 0).is_number_unsigned()) continue;
    if (At(At(instructions, At(decision, 0).get<size_t>()), 0) != "SamplePerfectTile") continue;
    const std::optional<std::vector<int64_t>> factors = Numbers(At(decision, 1));
    if (!factors.has_value()) continue;
    double extent = 1;
    for (const int64_t factor : *factors) extent *= static_cast<double>(factor);
    if (extent < 1 || extent > static_cast<double>(kExtentMax)) return Unread("its tile sizes are invalid");
    AddLoop(static_cast<int64_t>(extent), *factors, task);
  }
  if (task.output.empty()) return Unread("no block of it is tiled in several levels");
  return task;
}

// Whether the line is of the file of workloads that MetaSchedule writes beside its records: [hash, module].
bool IsWorkloadOfMetaSchedule(const json& line) {
  return line.is_array() && line.size() == 2 && line[0].is_string() && line[1].is_string();
}

// An error if tiles or loops have impossible sizes.
absl::Status CheckTiles(const TiledTask& task) {
  double points = 1;
  for (const TiledAxis& axis : task.output) {
    if (axis.inner < 1 || axis.inner > axis.extent) return Unread("its tiles are larger than its loops");
    points *= static_cast<double>(axis.extent);
  }
  return points > kOutputPointsMax ? Unread("its loops are longer than any tensor") : absl::OkStatus();
}

// Adds a line to log.tasks or counts it as failed. An error says why it cannot be read.
absl::Status ReadLine(const json& line, TvmLog& log) {
  const bool autotvm = line.is_object() && line.contains("input"), ansor = line.is_object() && line.contains("i");
  const bool meta = line.is_array() && line.size() == 2 && line[0].is_number_integer();
  if (!autotvm && !ansor && !meta) return Unread("it is not a record of AutoTVM, Ansor or MetaSchedule");
  const json& result = autotvm ? Member(line, "result") : Member(line, "r");
  HONE_ASSIGN_OR_RETURN(const std::optional<double> seconds,
                        meta ? SecondsOf(At(At(line, 1), 1), json()) : SecondsOf(At(result, 0), At(result, 1)));
  if (!seconds.has_value()) {
    ++log.failed;
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(TiledTask task, autotvm ? ReadAutoTvm(line) : ansor ? ReadAnsor(line) : ReadMetaSchedule(line));
  HONE_RETURN_IF_ERROR(CheckTiles(task));
  task.seconds = *seconds;
  log.tasks.push_back(std::move(task));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TvmLog> ReadTvmLog(std::istream& text) {
  TvmLog log;
  const auto buffer = std::make_unique_for_overwrite<char[]>(kLogLineBytesMax + 1);
  int64_t number = 1;
  for (; text.getline(buffer.get(), kLogLineBytesMax + 1); ++number) {
    const std::string_view line(buffer.get(), static_cast<size_t>(text.gcount()) - (text.eof() ? 0 : 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos || line.starts_with('#')) continue;
    const json value = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (IsWorkloadOfMetaSchedule(value)) continue;
    const absl::Status read = value.is_discarded() ? Unread("it is not JSON") : ReadLine(value, log);
    if (!read.ok()) log.unread[std::string(read.message())].push_back(number);
  }
  if (text.eof() || text.bad()) return log;
  return absl::ResourceExhaustedError(
      fmt::format("line {} has more than {} MiB; the file is not a tuning log", number, kLogLineBytesMax >> 20));
}

}  // namespace hone::tuner
