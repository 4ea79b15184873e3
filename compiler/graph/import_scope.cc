// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/import_scope.h"

#include "base/status.h"
#include "compiler/graph/import_as_loop.h"
#include "compiler/graph/import_sequence.h"
#include "compiler/graph/op.h"
#include "compiler/graph/opsets/table.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

constexpr int64_t kOpsetMin = 1, kOpsetMax = 28;

}  // namespace

absl::Status Define(const std::string& name, absl::StatusOr<ValueId> id, Scope& scope) {
  if (name.empty() || !scope.values.emplace(name, std::move(id)).second) {
    return absl::InvalidArgumentError(fmt::format("value '{}' is defined twice or has no name", name));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> OutputsRead(const RawNode& node, const std::vector<std::string>& of_body) {
  std::vector<std::string> names(node.outputs.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= of_body.size()) return absl::InvalidArgumentError("the node has more outputs than its body defines");
    names[i] = of_body[i];
  }
  return names;
}

absl::StatusOr<std::vector<ValueId>> FindAll(const std::vector<std::string>& names, const Scope& scope) {
  std::vector<ValueId> values;
  for (const std::string& name : names) {
    HONE_ASSIGN_OR_RETURN(const ValueId id, name.empty() ? kAbsent : scope.Find(name));
    values.push_back(id);
  }
  return values;
}

absl::StatusOr<std::vector<ValueId>> FindOutputs(const std::vector<std::string>& names, const Scope& scope) {
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, FindAll(names, scope));
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (!name.empty() && outputs[i] == kAbsent) {
      return absl::InvalidArgumentError(fmt::format("its body does not define output '{}'", name));
    }
  }
  return outputs;
}

absl::StatusOr<RawNode> BindAttributes(RawNode node, const Context& context) {
  const bool branches = node.domain.empty() && node.op == "If";
  for (auto it = node.attributes.begin(); it != node.attributes.end();) {
    const std::string reference = it->second.reference;
    if (reference.empty()) {
      const auto* unread = std::get_if<absl::Status>(&it->second.value);
      if (unread != nullptr && !branches) return *unread;
      ++it;
      continue;
    }
    if (context.call_attributes == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("attribute '{}' refers to '{}' outside a function", it->first, reference));
    }
    auto value = context.call_attributes->find(reference);
    if (value == context.call_attributes->end()) {
      it = node.attributes.erase(it);
      continue;
    }
    it->second = value->second;
    it->second.reference.clear();  // visit it again, as an attribute of the node itself
  }
  return node;
}

std::map<std::string, Attribute> AttributesOf(const RawNode& node) {
  std::map<std::string, Attribute> attributes;
  for (const auto& [name, attribute] : node.attributes) {
    std::visit(
        [&]<typename T>(const T& value) {
          if constexpr (std::is_constructible_v<Attribute, T>) attributes[name] = value;
        },
        attribute.value);
  }
  return attributes;
}

absl::StatusOr<const RawGraph*> BodyOf(const RawNode& node, const std::string& name) {
  const auto it = node.attributes.find(name);
  if (it != node.attributes.end()) {
    if (const auto* unread = std::get_if<absl::Status>(&it->second.value)) return *unread;
  }
  const auto* body =
      it == node.attributes.end() ? nullptr : std::get_if<std::shared_ptr<const RawGraph>>(&it->second.value);
  if (body == nullptr || *body == nullptr) return absl::InvalidArgumentError(name + " is missing");
  return body->get();
}

absl::StatusOr<const RawGraph*> BranchOf(const RawNode& node, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const RawGraph* const body, BodyOf(node, name));
  for (const RawInput& input : body->inputs) {
    HONE_RETURN_IF_ERROR(Annotate(input.type_error, fmt::format("input '{}'", input.name)));
  }
  return body;
}

int64_t OpsetOf(const std::string& domain, const std::map<std::string, int64_t>& opsets) {
  const auto opset = opsets.find(domain);
  return opset != opsets.end() ? opset->second : domain.empty() ? kOpsetMax : 1;
}

absl::Status CheckOpset(const std::map<std::string, int64_t>& opsets) {
  const auto it = opsets.find("");
  if (it == opsets.end()) return absl::OkStatus();
  if (it->second >= kOpsetMin && it->second <= kOpsetMax) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("the model uses opset {}; supported are {} to {}: convert the model",
                                                it->second, kOpsetMin, kOpsetMax));
}

const decompose::Row* FindDecomposition(const RawNode& node, const std::map<std::string, int64_t>& opsets) {
  const auto onnx_opset = opsets.find("");
  return decompose::FindRow(node.domain, node.op, onnx_opset == opsets.end() ? 0 : onnx_opset->second);
}

bool HasMeaning(const RawNode& node, const std::map<std::string, int64_t>& opsets) {
  if (FindOp(node.domain, node.op) != nullptr || FindDecomposition(node, opsets) != nullptr) return true;
  if (FindAsLoop(node, nullptr) != nullptr || Sequences::Handles(node, {})) return true;
  return node.domain.empty() && opsets::FindRewrite(node.op, OpsetOf(node.domain, opsets)) != nullptr;
}

}  // namespace hone::graph
