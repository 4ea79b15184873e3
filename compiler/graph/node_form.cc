// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/node_form.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "base/split.h"
#include "compiler/graph/convert_attribute.h"
#include "compiler/graph/ops/signatures.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::graph {
namespace {

struct AttributeForm {
  std::string_view name;
  char kind = 0;  // a letter of OpSignature::attributes
};

std::vector<AttributeForm> AttributesOf(const OpSignature& signature) {
  std::vector<AttributeForm> forms;
  if (signature.attributes.empty()) return forms;
  for (const std::string_view form : SplitAt(signature.attributes, ' ')) {
    const size_t colon = form.find(':');
    forms.push_back({form.substr(0, colon), form[colon + 1]});
  }
  return forms;
}

const AttributeForm* FindForm(std::span<const AttributeForm> forms, std::string_view name) {
  const auto form = std::ranges::find(forms, name, &AttributeForm::name);
  return form == forms.end() ? nullptr : &*form;
}

// The number of letters to insert, delete or replace that turns one text into the other.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t k = 0; k < b.size(); ++k) {
      const size_t replaced = diagonal + (std::tolower(a[i]) == std::tolower(b[k]) ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({replaced, row[k] + 1, row[k + 1] + 1});
    }
  }
  return row.back();
}

// The known attribute that a misspelt one most probably means; empty if none has most of its letters.
std::string_view SimilarName(std::span<const AttributeForm> forms, std::string_view name) {
  constexpr size_t kMisspeltLettersMax = 2;
  std::string_view best;
  size_t least = kMisspeltLettersMax + 1;
  for (const AttributeForm& form : forms) {
    const size_t distance = EditDistance(form.name, name);
    if (distance >= least || 2 * distance > name.size()) continue;
    least = distance;
    best = form.name;
  }
  return best;
}

std::string UnknownAttribute(const RawNode& node, const OpSignature& signature, int64_t opset,
                             std::span<const AttributeForm> forms, const std::string& name) {
  for (const OpSignature& other : SignaturesOf(node.op)) {
    if (FindForm(AttributesOf(other), name) == nullptr) continue;
    return fmt::format(
        "attribute '{}' is not part of opset {}: {} has it {}; convert the model to one opset", name, opset, node.op,
        other.since > signature.since ? fmt::format("from opset {} on", other.since) : "in older opsets");
  }
  const std::string_view similar = SimilarName(forms, name);
  if (!similar.empty()) return fmt::format("attribute '{}' is unknown; '{}' is similar: rename it", name, similar);
  std::vector<std::string_view> names;
  for (const AttributeForm& form : forms) names.push_back(form.name);
  return fmt::format("attribute '{}' is unknown; remove it ({} has {})", name, node.op,
                     names.empty() ? "no attributes" : fmt::format("{}", fmt::join(names, ", ")));
}

// Operators whose axes moved from an attribute to an input. Our operator functions take either form in every opset.
bool TakesAxesInBothForms(const RawNode& node) {
  bool as_attribute = false, as_input = false;
  for (const OpSignature& signature : SignaturesOf(node.op)) {
    const bool has_axes = FindForm(AttributesOf(signature), "axes") != nullptr;
    as_input |= as_attribute && !has_axes && signature.inputs_max == 2;
    as_attribute |= has_axes;
  }
  return as_input;
}

// The number of ONNX's element type with this name, as in TensorProto.DataType; 0 if there is none.
int64_t ElementTypeNumber(std::string_view name) {
  constexpr std::string_view kNames[] = {"FLOAT",  "UINT8",     "INT8",       "UINT16",  "INT16",  "INT32",
                                         "INT64",  "STRING",    "BOOL",       "FLOAT16", "DOUBLE", "UINT32",
                                         "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16"};
  const auto found = std::ranges::find(kNames, name);
  return found == std::end(kNames) ? 0 : found - std::begin(kNames) + 1;
}

template <typename T>
void Convert(RawAttribute& attribute) {
  if (std::holds_alternative<T>(attribute.value)) return;
  if (std::optional<T> converted = ConvertAttribute<T>(attribute.value)) attribute.value = *std::move(converted);
}

// Leaves a value without a certain meaning as it is; the operator function then says which type it needs.
void ConvertTo(char kind, const std::string& name, RawAttribute& attribute) {
  const auto* text = std::get_if<std::string>(&attribute.value);
  const bool names_a_type = kind == 'i' && text != nullptr && (name == "to" || name.ends_with("dtype"));
  if (const int64_t type = names_a_type ? ElementTypeNumber(*text) : 0; type != 0) attribute.value = type;
  switch (kind) {
    case 'i':
      return Convert<int64_t>(attribute);
    case 'f':
      return Convert<double>(attribute);
    case 's':
      return Convert<std::string>(attribute);
    case 'I':
      return Convert<std::vector<int64_t>>(attribute);
    case 'F':
      return Convert<std::vector<double>>(attribute);
    case 'S':
      return Convert<std::vector<std::string>>(attribute);
    default:
      return;  // tensors, graphs and types have one form
  }
}

void CheckCount(const char* what, size_t count, int count_max, std::vector<std::string>& reasons) {
  if (count_max == kAnyNumber || count <= static_cast<size_t>(count_max)) return;
  reasons.push_back(fmt::format("it has {} {}s, but the operator has at most {}", count, what, count_max));
}

// The number of inputs without the omitted ones at the end, whose names are empty.
size_t CountNamed(const std::vector<std::string>& names) {
  size_t count = names.size();
  while (count > 0 && names[count - 1].empty()) --count;
  return count;
}

}  // namespace

absl::Status CheckNodeForm(RawNode& node, int64_t opset, std::vector<std::string>& warnings) {
  if (!node.domain.empty()) return absl::OkStatus();
  const std::span<const OpSignature> versions = SignaturesOf(node.op);
  if (versions.empty()) return absl::OkStatus();
  const OpSignature* signature = FindSignature(node.op, opset);
  if (signature == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("{0} exists from opset {1} on, but the model uses opset {2}; export it with opset {1} or later",
                    node.op, versions.front().since, opset));
  }
  if (signature->deprecated) warnings.push_back(fmt::format("{} is deprecated in opset {}", node.op, opset));
  const std::vector<AttributeForm> forms = AttributesOf(*signature);
  const bool axes_in_both_forms = TakesAxesInBothForms(node);
  std::vector<std::string> reasons;
  for (auto& [name, attribute] : node.attributes) {
    const AttributeForm* form = FindForm(forms, name);
    if (form != nullptr) {
      ConvertTo(form->kind, name, attribute);
    } else if (axes_in_both_forms && name == "axes") {
      ConvertTo('I', name, attribute);
      warnings.push_back(
          fmt::format("the attribute axes is taken, although {} has an input for it in opset {}", node.op, opset));
    } else if (!name.starts_with("__")) {  // runtimes mark their own attributes in this way
      reasons.push_back(UnknownAttribute(node, *signature, opset, forms, name));
    }
  }
  const bool axes_as_input = axes_in_both_forms && FindForm(forms, "axes") != nullptr;
  CheckCount("input", CountNamed(node.inputs), axes_as_input ? 2 : signature->inputs_max, reasons);
  CheckCount("output", node.outputs.size(), signature->outputs_max, reasons);
  if (reasons.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}", fmt::join(reasons, "; ")));
}

}  // namespace hone::graph
