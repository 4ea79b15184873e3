// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/convolution.h"

#include <algorithm>
#include <map>
#include <set>

namespace hone::schedule {
namespace {

using Names = std::set<std::string, std::less<>>;

// The variables of an index that is a sum of distinct variables; nullopt for any other index.
std::optional<std::vector<std::string>> Summands(const ir::Expr& index, const ir::Ranges& ranges) {
  const ir::Linear linear = ir::ToLinear(index, ranges);
  if (linear.constant != 0) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [atom, k] : linear.terms) {
    const ir::Var* v = atom.As<ir::Var>();
    if (v == nullptr || k != 1) return std::nullopt;
    names.push_back(v->name);
  }
  return names;
}

// Assigns a role to each axis by looking at every dimension of the two loads.
class Finder {
 public:
  explicit Finder(const ir::Stage& stage) : ranges_(AxisRanges(stage)) {
    for (const ir::Axis& axis : stage.axes) {
      outer_[axis.name] = axis;
      order_.push_back(axis.name);
    }
    for (const ir::Axis& axis : stage.reduce_axes) {
      reduced_[axis.name] = axis;
    }
  }

  std::optional<Convolution> Find(const ir::Expr& data, const ir::Expr& weights) {
    if (!ReadData(*data.As<ir::Load>()) || !ReadWeights(*weights.As<ir::Load>())) return std::nullopt;
    found_.data = data;
    found_.weights = weights;
    return found_;
  }

 private:
  struct Window {
    std::string out, step;
    size_t dim;
  };

  bool ReadData(const ir::Load& load) {
    std::vector<Window> windows;
    for (size_t d = 0; d < load.indices.size(); ++d) {
      const auto names = Summands(load.indices[d], ranges_);
      if (!names.has_value() || names->size() > 2) return false;
      for (const std::string& name : *names) {
        if (!data_.insert(name).second) return false;  // used in two dimensions: a diagonal
      }
      if (names->size() == 1 && reduced_.contains(names->front())) {
        if (!found_.channel.name.empty()) return false;
        found_.channel = reduced_.at(names->front());
      } else if (names->size() == 2) {
        const bool first = reduced_.contains(names->front());
        const std::string& step = (*names)[first ? 0 : 1];
        const std::string& out = (*names)[first ? 1 : 0];
        if (!reduced_.contains(step) || !outer_.contains(out)) return false;
        windows.push_back({out, step, d});
      }
    }
    if (windows.size() != 2 || found_.channel.name.empty() || reduced_.size() != 3) return false;
    const auto place = [&](const Window& w) { return std::ranges::find(order_, w.out); };
    if (place(windows[0]) > place(windows[1])) std::swap(windows[0], windows[1]);
    for (size_t i = 0; i < 2; ++i) {
      found_.out[i] = outer_.at(windows[i].out);
      found_.window[i] = reduced_.at(windows[i].step);
      found_.data_dims[i] = windows[i].dim;
    }
    return true;
  }

  bool ReadWeights(const ir::Load& load) {
    Names used;
    for (const ir::Expr& index : load.indices) {
      const auto names = Summands(index, ranges_);
      if (!names.has_value() || names->size() > 1) return false;
      if (!names->empty() && !used.insert(names->front()).second) return false;
    }
    for (const auto& [name, axis] : reduced_) {
      if (used.erase(name) == 0) return false;
    }
    if (used.size() != 1 || data_.contains(*used.begin())) return false;
    found_.filter = outer_.at(*used.begin());
    for (const std::string& name : order_) {
      if (name == found_.filter.name) continue;
      if (!data_.contains(name) && outer_.at(name).extent.max() > 1)
        return false;  // the data do not depend on it: equal results, computed many times
      if (name != found_.out[0].name && name != found_.out[1].name) found_.batch.push_back(outer_.at(name));
    }
    return true;
  }

  std::map<std::string, ir::Axis, std::less<>> outer_, reduced_;
  std::vector<std::string> order_;  // names of the output's axes, in order
  ir::Ranges ranges_;
  Names data_;  // variables in the indices of the data
  Convolution found_;
};

}  // namespace

std::optional<Convolution> FindConvolution(const State& state, const ir::Stage& stage) {
  const ir::Binary* product = stage.value.As<ir::Binary>();
  if (stage.reduction != ir::Reduction::kSum || product == nullptr || product->op != ir::BinaryOp::kMul) {
    return std::nullopt;
  }
  const ir::Load* a = product->a.As<ir::Load>();
  const ir::Load* b = product->b.As<ir::Load>();
  if (a == nullptr || b == nullptr || a->mask.defined() || b->mask.defined()) return std::nullopt;
  const bool a_fixed = IsFixed(state, a->buffer.get()), b_fixed = IsFixed(state, b->buffer.get());
  if (a_fixed == b_fixed) return std::nullopt;
  return a_fixed ? Finder(stage).Find(product->b, product->a) : Finder(stage).Find(product->a, product->b);
}

}  // namespace hone::schedule
