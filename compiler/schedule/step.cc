// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/step.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/split.h"
#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/op_names.h"

namespace hone::schedule {
namespace {

constexpr std::string_view kTailNames[] = {"mask", "shift", "peel", "fit"};

std::string_view KindName(ir::LoopKind kind) {
  switch (kind) {
    case ir::LoopKind::kSerial:
      return "serial";
    case ir::LoopKind::kParallel:
      return "parallel";
    case ir::LoopKind::kVectorized:
      return "vectorize";
    case ir::LoopKind::kUnrolled:
      return "unroll";
    case ir::LoopKind::kGroup:
      return "group";
    case ir::LoopKind::kLane:
      return "lane";
  }
  return "";
}

bool IsBound(ir::LoopKind kind) { return kind == ir::LoopKind::kGroup || kind == ir::LoopKind::kLane; }

std::string PrintDim(const PackDim& d) {
  if (d.factor == 0) return fmt::format("{}", d.dim);
  return fmt::format("{}{}{}", d.dim, d.remainder ? '%' : '/', d.factor);
}

using Words = std::vector<std::string_view>;

Words SplitWords(std::string_view line) { return SplitNonEmpty(line, ' '); }

std::optional<int64_t> ParseInt(std::string_view word) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<PackDim> ParseDim(std::string_view word) {
  const size_t mark = word.find_first_of("/%");
  const auto dim = ParseInt(word.substr(0, mark));
  if (!dim.has_value()) return std::nullopt;
  if (mark == std::string_view::npos) return PackDim{static_cast<int>(*dim)};
  const auto factor = ParseInt(word.substr(mark + 1));
  if (!factor.has_value() || *factor < 1) return std::nullopt;
  return PackDim{static_cast<int>(*dim), *factor, word[mark] == '%'};
}

std::optional<Step> ParseSplit(const Words& w) {
  if (w.size() != 4) return std::nullopt;
  const auto factor = ParseInt(w[2]);
  for (size_t t = 0; t < std::size(kTailNames); ++t) {
    if (factor.has_value() && w[3] == kTailNames[t]) return Split{std::string(w[1]), *factor, static_cast<Tail>(t)};
  }
  return std::nullopt;
}

std::optional<Step> ParsePack(const Words& w) {
  if (w.size() < 4) return std::nullopt;
  Pack pack{std::string(w[1]), std::string(w[2]), {}};
  for (size_t i = 3; i < w.size(); ++i) {
    const auto dim = ParseDim(w[i]);
    if (!dim.has_value()) return std::nullopt;
    pack.dims.push_back(*dim);
  }
  return pack;
}

std::optional<Step> ParseStoreIn(const Words& w) {
  if (w.size() < 3 || w.size() > 5) return std::nullopt;
  const auto pad = w.size() > 3 ? ParseInt(w[3]) : std::optional<int64_t>(0);
  const auto dims = w.size() > 4 ? ParseInt(w[4]) : std::optional<int64_t>(1);
  if (!pad.has_value() || !dims.has_value()) return std::nullopt;
  for (const auto scope : {ir::Scope::kLocal, ir::Scope::kShared, ir::Scope::kSwizzled}) {
    if (w[2] == ir::Name(scope)) return StoreIn{std::string(w[1]), scope, *pad, *dims};
  }
  return std::nullopt;
}

std::optional<Step> ParseRfactor(const Words& w) {
  const bool first = w.size() == 6 && w[5] == "first";
  if ((w.size() != 5 && !first) || (w[4] != "outer" && w[4] != "inner")) return std::nullopt;
  const auto factor = ParseInt(w[3]);
  if (!factor.has_value()) return std::nullopt;
  return Rfactor{std::string(w[1]), std::string(w[2]), *factor, w[4] == "inner", first};
}

// Parses "VERB NAME NUMBER" into a step with these two members.
template <typename S>
std::optional<Step> ParseCounted(const Words& w) {
  const auto count = w.size() == 3 ? ParseInt(w[2]) : std::nullopt;
  if (!count.has_value()) return std::nullopt;
  return S{std::string(w[1]), *count};
}

std::optional<Step> ParseStep(const Words& w) {
  const std::string_view verb = w[0];
  const auto word = [&](size_t i) { return std::string(w[i]); };
  if (verb == "split") return ParseSplit(w);
  if (verb == "pack") return ParsePack(w);
  if (verb == "split_axis" && w.size() == 4) {
    if (const auto factor = ParseInt(w[3])) return SplitAxis{word(1), word(2), *factor};
  }
  if (verb == "rfactor") return ParseRfactor(w);
  if (verb == "copy_async" && w.size() == 4) {
    const auto count = ParseInt(w[2]), groups = ParseInt(w[3]);
    if (count.has_value() && groups.has_value()) return CopyAsync{word(1), *count, *groups};
  }
  if (verb == "copy_async") return ParseCounted<CopyAsync>(w);
  if (verb == "pipeline" && w.size() == 4) {
    const auto buffers = ParseInt(w[2]), async_iterations = ParseInt(w[3]);
    if (buffers.has_value() && async_iterations.has_value()) return Pipeline{word(1), *buffers, *async_iterations};
  }
  if (verb == "pipeline") return ParseCounted<Pipeline>(w);
  if (verb == "prefetch" && w.size() == 5) {
    if (const auto ahead = ParseInt(w[4])) return Prefetch{word(1), word(2), word(3), *ahead};
  }
  if (verb == "winograd") return ParseCounted<Winograd>(w);
  if (verb == "reorder" && w.size() > 2) {
    Reorder reorder;
    for (size_t i = 1; i < w.size(); ++i) reorder.loops.push_back(word(i));
    return reorder;
  }
  if (verb == "fuse" && w.size() == 3) return Fuse{word(1), word(2)};
  if (verb == "compute_at" && w.size() == 3) return ComputeAt{word(1), word(2)};
  if (verb == "cache_read" && w.size() == 3) return CacheRead{word(1), word(2)};
  if (verb == "skip_padding" && w.size() == 2) return SkipPadding{word(1)};
  if (verb == "total_order" && w.size() == 2) return TotalOrder{word(1)};
  if (verb == "scan" && w.size() == 2) return Scan{word(1)};
  if (verb == "recode" && w.size() == 3) return Recode{word(1), word(2)};
  if (verb == "widen" && w.size() == 3) return Widen{word(1), word(2)};
  if (verb == "round" && w.size() == 4) {
    if (const auto bits = ParseInt(w[3])) return Round{word(1), word(2), *bits};
  }
  if (verb == "distribute" && w.size() == 2) return Distribute{word(1)};
  if (verb == "factor_out" && w.size() == 2) return FactorOut{word(1)};
  if (verb == "tensorize" && w.size() == 3) {
    if (const auto instruction = ir::ParseTensorInstruction(w[2])) return Tensorize{word(1), *instruction};
  }
  if (verb == "store_in") return ParseStoreIn(w);
  if (verb == "bind" && w.size() == 3) {
    for (const auto kind : {ir::LoopKind::kGroup, ir::LoopKind::kLane}) {
      if (w[2] == KindName(kind)) return Annotate{word(1), kind};
    }
  }
  if (verb == "inline" && w.size() == 2) return Inline{word(1)};
  if (verb == "cache_write" && w.size() == 2) return CacheWrite{word(1)};
  for (const auto kind : {ir::LoopKind::kVectorized, ir::LoopKind::kUnrolled, ir::LoopKind::kParallel}) {
    if (verb == KindName(kind) && w.size() == 2) return Annotate{word(1), kind};
  }
  return std::nullopt;
}

std::string Join(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

}  // namespace

std::string Print(const Step& step) {
  return std::visit(
      ir::Overload{
          [](const Split& s) {
            return fmt::format("split {} {} {}", s.loop, s.factor, kTailNames[static_cast<int>(s.tail)]);
          },
          [](const Fuse& s) { return fmt::format("fuse {} {}", s.outer, s.inner); },
          [](const Reorder& s) { return "reorder " + Join(s.loops); },
          [](const Annotate& s) {
            return IsBound(s.kind) ? fmt::format("bind {} {}", s.loop, KindName(s.kind))
                                   : fmt::format("{} {}", KindName(s.kind), s.loop);
          },
          [](const StoreIn& s) {
            const std::string text = fmt::format("store_in {} {}", s.stage, ir::Name(s.scope));
            if (s.dims != 1) return fmt::format("{} {} {}", text, s.pad, s.dims);
            return s.pad == 0 ? text : fmt::format("{} {}", text, s.pad);
          },
          [](const ComputeAt& s) { return fmt::format("compute_at {} {}", s.stage, s.loop); },
          [](const Inline& s) { return "inline " + s.stage; },
          [](const CacheWrite& s) { return "cache_write " + s.stage; },
          [](const CacheRead& s) { return fmt::format("cache_read {} {}", s.buffer, s.stage); },
          [](const SplitAxis& s) { return fmt::format("split_axis {} {} {}", s.stage, s.axis, s.factor); },
          [](const Pack& s) {
            std::vector<std::string> dims;
            for (const PackDim& d : s.dims) dims.push_back(PrintDim(d));
            return fmt::format("pack {} {} {}", s.buffer, s.stage, Join(dims));
          },
          [](const Rfactor& s) {
            return fmt::format("rfactor {} {} {} {}{}", s.stage, s.axis, s.factor, s.keep_inner ? "inner" : "outer",
                               s.first ? " first" : "");
          },
          [](const SkipPadding& s) { return "skip_padding " + s.stage; },
          [](const TotalOrder& s) { return "total_order " + s.stage; },
          [](const Scan& s) { return "scan " + s.stage; },
          [](const Recode& s) { return fmt::format("recode {} {}", s.buffer, s.stage); },
          [](const Widen& s) { return fmt::format("widen {} {}", s.buffer, s.stage); },
          [](const Round& s) { return fmt::format("round {} {} {}", s.buffer, s.stage, s.bits); },
          [](const Distribute& s) { return "distribute " + s.stage; },
          [](const FactorOut& s) { return "factor_out " + s.stage; },
          [](const Winograd& s) { return fmt::format("winograd {} {}", s.stage, s.size); },
          [](const Tensorize& s) { return fmt::format("tensorize {} {}", s.stage, ir::EntryOf(s.instruction).name); },
          [](const CopyAsync& s) {
            return fmt::format("copy_async {} {}", s.stage, s.count) +
                   (s.groups > 1 ? fmt::format(" {}", s.groups) : "");
          },
          [](const Pipeline& s) {
            const std::string text = fmt::format("pipeline {} {}", s.loop, s.buffers);
            return s.async_iterations > 0 ? fmt::format("{} {}", text, s.async_iterations) : text;
          },
          [](const Prefetch& s) { return fmt::format("prefetch {} {} {} {}", s.buffer, s.stage, s.loop, s.ahead); },
      },
      step);
}

std::string Print(const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule) text += Print(step) + "\n";
  return text;
}

absl::StatusOr<Schedule> ParseSchedule(std::string_view text) {
  Schedule schedule;
  int number = 0;
  for (const std::string_view line : SplitAt(text, '\n')) {
    ++number;
    const Words words = SplitWords(line);
    if (words.empty()) continue;
    auto step = ParseStep(words);
    if (!step.has_value()) {
      return absl::InvalidArgumentError(fmt::format("schedule line {}: '{}' is not a step", number, line));
    }
    schedule.push_back(*std::move(step));
  }
  return schedule;
}

}  // namespace hone::schedule
