// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/abstract_sizes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/match.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

std::set<std::string> NamesIn(const ir::Size& size) {
  std::set<std::string> names;
  size.ForEachSymbol([&](const ir::OpenSize& symbol) { names.insert(symbol.name); });
  return names;
}

bool Share(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::ranges::any_of(a, [&](const std::string& name) { return b.contains(name); });
}

// Extents that are connected by symbols, and these symbols.
struct Component {
  std::set<std::string> names;
  std::vector<ir::Size> extents;
};

std::vector<Component> ComponentsOf(const ir::Workload& workload) {
  std::vector<Component> components;
  const auto add = [&](const ir::Size& extent) {
    if (extent.IsFixed()) return;
    Component joined{NamesIn(extent), {extent}};
    std::erase_if(components, [&](Component& other) {
      if (!Share(other.names, joined.names)) return false;
      joined.names.insert(other.names.begin(), other.names.end());
      for (ir::Size& known : other.extents) {
        if (std::ranges::find(joined.extents, known) == joined.extents.end()) joined.extents.push_back(known);
      }
      return true;
    });
    components.push_back(std::move(joined));
  };
  for (const ir::Param& param : workload.params) std::ranges::for_each(param.buffer->shape, add);
  for (const ir::Stage& stage : workload.stages) {
    for (const ir::Axis& axis : stage.axes) add(axis.extent);
    for (const ir::Axis& axis : stage.reduce_axes) add(axis.extent);
  }
  return components;
}

// The factor c with size == c * base; nullopt if there is none.
std::optional<int64_t> FactorOf(const ir::Size& size, const ir::Size& base) {
  if (!ir::Divides(base, size)) return std::nullopt;
  const ir::Size factor = ir::ExactQuotient(size, base);
  return factor.IsFixed() ? std::optional(factor.value()) : std::nullopt;
}

// Rewrites sizes that are multiples of `base` as multiples of `symbol`.
class SizeReplacer {
 public:
  SizeReplacer(const Component& component, ir::Size base, const ir::OpenSize& symbol,
               std::span<const ir::OpenSize> symbols)
      : component_(component), base_(std::move(base)), symbol_(ir::Size::Open(symbol)), symbols_(symbols) {}

  // False if an expression uses one of the component's symbols in another way.
  bool ok() const { return ok_; }

  ir::Size Replace(const ir::Size& size) {
    if (size.IsFixed() || !Share(NamesIn(size), component_.names)) return size;
    const std::optional<int64_t> factor = FactorOf(size, base_);
    ok_ = ok_ && factor.has_value();
    return factor.has_value() ? symbol_ * *factor : size;
  }

  ir::Expr Replace(const ir::Expr& e) {
    if (e.type() == ir::kIndexType && e.As<ir::IntImm>() == nullptr) {
      if (const std::optional<ir::Size> size = ir::ToSize(e, symbols_)) return ir::Expr(Replace(*size));
    }
    return ir::MapChildren(e, [&](const ir::Expr& child) { return Replace(child); });
  }

 private:
  const Component& component_;
  const ir::Size base_, symbol_;
  const std::span<const ir::OpenSize> symbols_;
  bool ok_ = true;
};

// The workload with the replacer's symbol; nullopt if the replacer fails.
std::optional<ir::Workload> Replaced(const ir::Workload& workload, SizeReplacer& replacer) {
  ir::Workload result = ir::MapSizes(
      workload, [&](const ir::Size& size) { return replacer.Replace(size); },
      [&](const ir::Expr& value) { return replacer.Replace(value); });
  if (!replacer.ok()) return std::nullopt;
  return result;
}

}  // namespace

std::vector<ir::Size> AbstractSizes(ir::Workload& workload) {
  const std::vector<ir::OpenSize> symbols = workload.sizes;
  std::map<std::string, ir::Size> meaning;
  for (const Component& component : ComponentsOf(workload)) {
    const ir::Size* base = nullptr;
    for (const ir::Size& candidate : component.extents) {
      const auto fits = [&](const ir::Size& extent) { return FactorOf(extent, candidate).has_value(); };
      if (std::ranges::all_of(component.extents, fits)) base = &candidate;
    }
    if (base == nullptr || base->min() < 0 || base->min() >= base->max()) continue;
    const ir::OpenSize symbol{fmt::format("size{}", meaning.size()), base->min(), base->max()};
    SizeReplacer replacer(component, *base, symbol, symbols);
    std::optional<ir::Workload> replaced = Replaced(workload, replacer);
    if (!replaced.has_value()) continue;
    meaning.emplace(symbol.name, *base);
    workload = *std::move(replaced);
    std::erase_if(workload.sizes, [&](const ir::OpenSize& size) { return component.names.contains(size.name); });
    workload.sizes.push_back(symbol);
  }
  std::vector<ir::Size> result;
  for (const ir::OpenSize& size : workload.sizes) {
    const auto found = meaning.find(size.name);
    result.push_back(found == meaning.end() ? ir::Size::Open(size) : found->second);
  }
  return result;
}

}  // namespace hone::graph
