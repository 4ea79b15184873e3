// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/fallback.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "compiler/graph/bind_inputs.h"
#include "compiler/graph/foreign_model.h"
#include "compiler/graph/node_order.h"
#include "compiler/graph/onnx_import.h"

namespace hone::graph {
namespace {

// The nodes of a model that its outputs need, and what they read from each other.
class NodeGraph {
 public:
  explicit NodeGraph(const RawModel& model) : nodes_(model.graph.nodes), reads_(nodes_.size()) {
    std::set<std::string> given;
    for (const RawInput& input : model.graph.inputs) given.insert(input.name);
    for (const RawInitializer& tensor : model.graph.initializers) given.insert(tensor.name);
    std::set<std::string> undefined;
    const auto order = OrderNodes(nodes_, [&](const std::string& name) { return given.contains(name); }, undefined);
    if (!order.ok()) return;  // the import tells why
    const std::set<std::string> needed = CollectNeeded(nodes_, *order, model.graph.outputs, CollectReads);
    for (const size_t node : *order) {
      if (!MakesAny(nodes_[node], needed)) continue;
      order_.push_back(node);
      for (const std::string& name : nodes_[node].outputs) makers_.emplace(name, node);
      CollectReads(nodes_[node], reads_[node]);
    }
    for (const size_t node : order_) {
      for (const std::string& name : reads_[node]) readers_[name].push_back(node);
    }
  }

  const std::vector<size_t>& order() const { return order_; }
  const std::set<std::string>& Reads(size_t node) const { return reads_[node]; }
  std::optional<size_t> MakerOf(const std::string& name) const {
    const auto maker = makers_.find(name);
    return maker == makers_.end() ? std::nullopt : std::optional(maker->second);
  }
  const std::vector<size_t>& ReadersOf(const std::string& name) const {
    static const std::vector<size_t> kNone;
    const auto readers = readers_.find(name);
    return readers == readers_.end() ? kNone : readers->second;
  }

  // The nodes that depend on one of `from`, these included.
  std::set<size_t> DependingOn(const std::set<size_t>& from) const {
    std::set<size_t> found = from;
    for (const size_t node : order_) {
      for (const std::string& name : reads_[node]) {
        const std::optional<size_t> maker = MakerOf(name);
        if (maker.has_value() && found.contains(*maker)) found.insert(node);
      }
    }
    return found;
  }
  // The nodes on which one of `to` depends, these included.
  std::set<size_t> NeededBy(const std::set<size_t>& to) const {
    std::set<size_t> found = to;
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      if (!found.contains(*node)) continue;
      for (const std::string& name : reads_[*node]) {
        if (const std::optional<size_t> maker = MakerOf(name)) found.insert(*maker);
      }
    }
    return found;
  }

 private:
  const std::vector<RawNode>& nodes_;
  std::vector<size_t> order_;
  std::vector<std::set<std::string>> reads_;  // per node
  std::map<std::string, size_t> makers_;
  std::map<std::string, std::vector<size_t>> readers_;
};

// Divides the foreign nodes into parts so that no part waits for a result of Hone's that needs another result of it.
//
// Every node has a stage. A node of Hone's is a stage later than the parts whose results it needs, and foreign nodes of
// one stage that are connected are a part.
class Divider {
 public:
  // is_known: whether the type of a value is known without computing it.
  Divider(const NodeGraph& nodes, std::set<size_t> foreign, std::function<bool(const std::string&)> is_known)
      : nodes_(nodes), foreign_(std::move(foreign)), is_known_(std::move(is_known)) {}

  // The parts, each in the order of the nodes.
  std::vector<std::vector<size_t>> Run() {
    Grow();
    for (int round = 0; !Agree(); ++round) {
      if (round < kRoundsMax) continue;
      AddBetween(foreign_, foreign_);
      earliest_.clear();
    }
    return Connected();
  }

 private:
  static constexpr int kRoundsMax = 100;  // of Agree; then all that lies between foreign nodes becomes foreign

  // Adds the nodes that read a value of a foreign node whose type is not known.
  void Grow() {
    for (const size_t node : nodes_.order()) {
      for (const std::string& name : nodes_.Reads(node)) {
        const std::optional<size_t> maker = nodes_.MakerOf(name);
        if (maker.has_value() && foreign_.contains(*maker) && !is_known_(name)) foreign_.insert(node);
      }
    }
  }

  // Adds the nodes on paths from one of `from` to one of `to`. Returns whether there was one.
  bool AddBetween(const std::set<size_t>& from, const std::set<size_t>& to) {
    const std::set<size_t> after = nodes_.DependingOn(from), before = nodes_.NeededBy(to);
    const size_t count = foreign_.size();
    std::ranges::set_intersection(after, before, std::inserter(foreign_, foreign_.end()));
    if (foreign_.size() == count) return false;
    Grow();
    return true;
  }

  void FindStages() {
    stages_ = earliest_;
    for (const size_t node : nodes_.order()) {
      int& stage = stages_[node];
      for (const std::string& name : nodes_.Reads(node)) {
        const std::optional<size_t> maker = nodes_.MakerOf(name);
        if (!maker.has_value()) continue;
        const bool leaves = foreign_.contains(*maker) && !foreign_.contains(node);
        stage = std::max(stage, stages_[*maker] + (leaves ? 1 : 0));
      }
    }
  }

  // Finds the stages. Returns false if the maker and a reader of a value of unknown type have different ones; something
  // that helps has then been changed.
  bool Agree() {
    FindStages();
    for (const size_t node : foreign_) {
      for (const std::string& name : nodes_.Reads(node)) {
        const std::optional<size_t> maker = nodes_.MakerOf(name);
        if (!maker.has_value() || !foreign_.contains(*maker) || is_known_(name)) continue;
        if (stages_[*maker] == stages_[node]) continue;
        if (!AddBetween({*maker}, {node})) earliest_[*maker] = stages_[node];
        return false;
      }
    }
    return true;
  }

  std::vector<std::vector<size_t>> Connected() const {
    std::map<size_t, size_t> root;  // per foreign node: another one of its part, or itself
    for (const size_t node : foreign_) root[node] = node;
    const auto find = [&](size_t node) {
      while (root[node] != node) node = root[node];
      return node;
    };
    for (const size_t node : foreign_) {
      for (const std::string& name : nodes_.Reads(node)) {
        const std::optional<size_t> maker = nodes_.MakerOf(name);
        if (!maker.has_value() || !foreign_.contains(*maker) || stages_.at(*maker) != stages_.at(node)) continue;
        root[find(node)] = find(*maker);
      }
    }
    std::map<size_t, std::vector<size_t>> parts;
    for (const size_t node : nodes_.order()) {
      if (foreign_.contains(node)) parts[find(node)].push_back(node);
    }
    std::vector<std::vector<size_t>> result;
    for (auto& [first, part] : parts) result.push_back(std::move(part));
    return result;
  }

  const NodeGraph& nodes_;
  std::set<size_t> foreign_;
  const std::function<bool(const std::string&)> is_known_;
  std::map<size_t, int> earliest_;  // the least stage that a node must have
  std::map<size_t, int> stages_;
};

class Mover {
 public:
  Mover(const RawModel& model, const ImportOptions& options) : model_(model), nodes_(model), options_(options) {
    for (const RawInitializer& tensor : model.graph.initializers) initializers_[tensor.name] = &tensor;
    for (const RawInput& declared : model.graph.declared) declared_.emplace(declared.name, &declared);
    std::vector<RawInput> inputs;
    for (const RawInput& input : model.graph.inputs) {
      if (!initializers_.contains(input.name)) inputs.push_back(input);
    }
    symbols_ = BindSymbols(inputs, options).value_or(DimRanges());
  }

  // Repeats trying imports while they refuse more nodes. Returns the model that is left.
  RawModel Run() {
    RawModel split = model_;
    places_.resize(model_.graph.nodes.size());
    std::iota(places_.begin(), places_.end(), int64_t{0});
    for (bool found = true; found;) {
      found = false;
      for (const ImportProblem& problem : TryImportOnnx(split, options_).report.problems) {
        if (!MayFallBack(problem) || places_[static_cast<size_t>(problem.place)] < 0) continue;
        reasons_[static_cast<size_t>(places_[static_cast<size_t>(problem.place)])].push_back(problem);
        found = true;
      }
      if (found) split = Split();
    }
    return split;
  }

  std::vector<ForeignNodes> TakeParts() { return std::move(parts_); }

 private:
  bool IsKnown(const std::string& name) const {
    const auto declared = declared_.find(name);
    return declared != declared_.end() && TypeOfForeign(*declared->second, symbols_, options_).ok();
  }

  RawModel Split() {
    std::set<size_t> foreign;
    for (const auto& [node, problems] : reasons_) foreign.insert(node);
    Divider divider(nodes_, foreign, [this](const std::string& name) { return IsKnown(name); });
    const std::vector<std::vector<size_t>> parts = divider.Run();
    std::map<size_t, size_t> part_of;  // per foreign node
    for (size_t i = 0; i < parts.size(); ++i) {
      for (const size_t node : parts[i]) part_of[node] = i;
    }
    RawModel split = model_;
    split.graph.nodes.clear();
    places_.clear();
    parts_.clear();
    for (size_t node = 0; node < model_.graph.nodes.size(); ++node) {
      if (part_of.contains(node)) continue;
      split.graph.nodes.push_back(model_.graph.nodes[node]);
      split.graph.nodes.back().name = NameOf(model_.graph.nodes[node], node);
      places_.push_back(static_cast<int64_t>(node));
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      split.graph.nodes.push_back(NodeOf(parts[i], [&](size_t reader) {
        const auto found = part_of.find(reader);
        return found != part_of.end() && found->second == i;
      }));
      places_.push_back(-1);
    }
    return split;
  }

  // The node that stands for a part.
  template <typename IsInside>
  RawNode NodeOf(const std::vector<size_t>& members, const IsInside& is_inside) {
    auto part = std::make_shared<RawPart>();
    ForeignNodes& report = parts_.emplace_back();
    RawNode node{
        .name = {}, .op = "Foreign", .domain = "hone", .overload = {}, .inputs = {}, .outputs = {}, .attributes = {}};
    std::set<std::string> reads;
    for (const size_t member : members) {
      const RawNode& raw = model_.graph.nodes[member];
      part->nodes.push_back(raw.source);
      part->members.push_back({.name = NameOf(raw, member), .op = raw.op});
      report.nodes.push_back(NameOf(raw, member));
      if (const auto reasons = reasons_.find(member); reasons != reasons_.end()) {
        report.reasons.insert(report.reasons.end(), reasons->second.begin(), reasons->second.end());
      }
      reads.insert(nodes_.Reads(member).begin(), nodes_.Reads(member).end());
      for (const std::string& name : raw.outputs) {
        const std::vector<size_t>& readers = nodes_.ReadersOf(name);
        const bool leaves = std::ranges::find(model_.graph.outputs, name) != model_.graph.outputs.end() ||
                            !std::ranges::all_of(readers, is_inside);
        if (name.empty() || !leaves) continue;
        node.outputs.push_back(name);
        const auto declared = declared_.find(name);
        part->outputs.push_back(declared != declared_.end() ? *declared->second : RawInput{.name = name, .shape = {}});
      }
    }
    for (const std::string& name : reads) {
      const std::optional<size_t> maker = nodes_.MakerOf(name);
      if (name.empty() || (maker.has_value() && is_inside(*maker))) continue;
      const auto initializer = initializers_.find(name);
      if (initializer != initializers_.end() && !initializer->second->source.empty()) {
        part->initializers.push_back(initializer->second->source);
      } else {
        node.inputs.push_back(name);
      }
    }
    part->functions = model_.function_sources;
    part->ir_version = model_.ir_version;
    part->opsets = model_.opsets;
    node.name = report.nodes.front();
    node.part = std::move(part);
    return node;
  }

  const RawModel& model_;
  const NodeGraph nodes_;
  const ImportOptions& options_;
  std::map<std::string, const RawInitializer*> initializers_;
  std::map<std::string, const RawInput*> declared_;
  DimRanges symbols_;
  std::map<size_t, std::vector<ImportProblem>> reasons_;  // per refused node
  std::vector<int64_t> places_;  // per node of the model that is tried: its place in model_; -1 for a part
  std::vector<ForeignNodes> parts_;
};

}  // namespace

std::vector<ForeignNodes> MoveRefused(RawModel& model, const ImportOptions& options) {
  if (!options.fallback) return {};
  const RawModel original = std::move(model);
  Mover mover(original, options);
  model = mover.Run();
  return mover.TakeParts();
}

}  // namespace hone::graph
