// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/cpp_header.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "deploy/runtime/dtype.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::package {
namespace {

// The C++ type of an element. Half precision is uint16_t, which holds the bits, because C++17 has no such types.
std::string_view CppType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kInt8:
      return "int8_t";
    case DType::kInt16:
      return "int16_t";
    case DType::kInt32:
      return "int32_t";
    case DType::kInt64:
      return "int64_t";
    case DType::kUInt8:
      return "uint8_t";
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return "uint16_t";
    case DType::kUInt32:
      return "uint32_t";
    case DType::kUInt64:
      return "uint64_t";
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
  }
  HONE_CHECK(!"an element type without a C++ type");
  return {};
}

// `name` as a C identifier: '_' replaces every other character and precedes a leading digit.
std::string Identifier(std::string_view name) {
  std::string result;
  for (const char c : name) result += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result.front())) != 0) result.insert(0, "_");
  return result;
}

// Whether a namespace cannot have this name: keywords, names of the language, of the included headers or of GNU
// compilers, and names with the prefixes of hone.h and hone_dlpack.h.
bool IsTaken(std::string_view name) {
  static const std::set<std::string_view> kTaken = {
      "alignas",     "alignof",   "and",        "and_eq",    "asm",      "auto",         "bitand",
      "bitor",       "bool",      "break",      "case",      "catch",    "char",         "char8_t",
      "char16_t",    "char32_t",  "class",      "compl",     "concept",  "const",        "consteval",
      "constexpr",   "constinit", "const_cast", "continue",  "co_await", "co_return",    "co_yield",
      "decltype",    "default",   "delete",     "do",        "double",   "dynamic_cast", "else",
      "enum",        "explicit",  "export",     "extern",    "false",    "float",        "for",
      "friend",      "goto",      "if",         "inline",    "int",      "long",         "mutable",
      "namespace",   "new",       "noexcept",   "not",       "not_eq",   "nullptr",      "operator",
      "or",          "or_eq",     "private",    "protected", "public",   "register",     "reinterpret_cast",
      "requires",    "return",    "short",      "signed",    "sizeof",   "static",       "static_assert",
      "static_cast", "struct",    "switch",     "template",  "this",     "thread_local", "throw",
      "true",        "try",       "typedef",    "typeid",    "typename", "typeof",       "union",
      "unsigned",    "using",     "virtual",    "void",      "volatile", "wchar_t",      "while",
      "xor",         "xor_eq",    "main",       "std",       "linux",    "unix",         "i386",
      "NULL",        "index"};
  if (kTaken.contains(name)) return true;
  constexpr std::string_view kBeginnings[] = {"hone_", "Hone", "HONE_", "DL", "kDL"};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

std::string NamespaceName(std::string_view model_name) {
  const std::string name = Identifier(model_name);
  return IsTaken(name) ? name + "_" : name;
}

// "input_my_image" -> "InputMyImage"
std::string Camel(const std::string& snake) {
  std::string result;
  bool up = true;
  for (const char c : snake) {
    if (c == '_') {
      up = true;
    } else {
      result += up ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      up = false;
    }
  }
  return result;
}

// An input or output and its names in the header.
struct Port {
  const PackageTensor* tensor;        // owned by the first program
  std::string member;                 // "input_image"
  std::string constant;               // "kInputImage"
  std::vector<int64_t> least, shape;  // the smallest and the largest extents of all programs
  int64_t elements = 1;               // of the largest shape

  size_t rank() const { return shape.size(); }
  bool IsOpen() const { return least != shape; }
};

// `name` as it can be shown in a C++ comment: '?' replaces quotes, backslashes and control characters.
std::string Shown(std::string_view name) {
  std::string result;
  for (const char c : name) result += c == '"' || c == '\\' || static_cast<unsigned char>(c) < 32 ? '?' : c;
  return result;
}

// A C++ string literal of exactly these bytes.
std::string Literal(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    result += plain ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return '"' + result + '"';
}

// Widens the port's extents by those of a tensor.
void Widen(Port& port, const PackageTensor& tensor) {
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    const int64_t least = tensor.extents.empty() ? tensor.shape[d] : tensor.extents[d].min();
    port.least[d] = std::min(port.least[d], least);
    port.shape[d] = std::max(port.shape[d], tensor.shape[d]);
  }
}

// ids: the inputs or the outputs, which all programs number alike.
std::vector<Port> PortsOf(std::span<const PackageProgram> programs, const std::vector<TensorId>& ids,
                          std::string_view direction) {
  std::vector<Port> ports;
  std::set<std::string> used;
  for (const TensorId id : ids) {
    const PackageTensor& first = programs.front().tensors[id];
    Port port{&first, "", "", first.shape, first.shape, 1};
    for (const PackageProgram& program : programs) Widen(port, program.tensors[id]);
    port.member = fmt::format("{}_{}", direction, Identifier(port.tensor->name));
    // Different names, such as "a.b" and "a/b", may give the same identifier: a number is appended to the later one.
    while (used.contains(Camel(port.member))) port.member += fmt::format("_{}", ports.size());
    used.insert(Camel(port.member));
    port.constant = "k" + Camel(port.member);
    for (const int64_t extent : port.shape) port.elements *= extent;
    ports.push_back(std::move(port));
  }
  return ports;
}

// "[1..8, 3]"
std::string RangeText(const Port& port) {
  std::vector<std::string> texts;
  for (size_t d = 0; d < port.rank(); ++d) {
    const int64_t least = port.least[d], most = port.shape[d];
    texts.push_back(least == most ? std::to_string(most) : fmt::format("{}..{}", least, most));
  }
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

// The declarations of the shapes and the size of a port with open dimensions.
std::string OpenConstants(const Port& port, std::string_view direction) {
  const PackageTensor& tensor = *port.tensor;
  const bool is_input = tensor.kind == TensorKind::kInput;
  std::string text =
      fmt::format("  // {} \"{}\": {}{}; {}\n", direction, Shown(tensor.name), Name(tensor.dtype), RangeText(port),
                  is_input ? "each run may have another shape" : "the shape follows from the inputs");
  if (is_input) {
    text += fmt::format("  static constexpr std::array<int64_t, {}> {}Min = {{{}}};  // smallest extents\n",
                        port.rank(), port.constant, fmt::join(port.least, ", "));
  }
  return text + fmt::format(
                    "  static constexpr std::array<int64_t, {0}> {1}Shape = {{{2}}};  // largest extents\n"
                    "  static constexpr size_t {1}Size = {3};  // elements of the largest shape\n",
                    port.rank(), port.constant, fmt::join(port.shape, ", "), port.elements);
}

// The declarations of a port's shape and size.
std::string Constants(const Port& port, std::string_view direction) {
  if (port.IsOpen()) return OpenConstants(port, direction);
  const PackageTensor& tensor = *port.tensor;
  return fmt::format(
      "  // {0} \"{1}\": {2}{3}\n"
      "  static constexpr std::array<int64_t, {4}> {5}Shape = {{{6}}};\n"
      "  static constexpr size_t {5}Size = {7};  // elements\n",
      direction, Shown(tensor.name), Name(tensor.dtype), port.shape, port.rank(), port.constant,
      fmt::join(port.shape, ", "), port.elements);
}

// The initializers of an array of HonePort.
std::string Descriptions(const std::vector<Port>& ports) {
  std::vector<std::string> descriptions;
  for (const Port& port : ports) {
    const DTypeTraits& type = *FindDType(port.tensor->dtype);
    descriptions.push_back(
        fmt::format("\n        HonePort{{{0}, {{{1}, {2}, 1}}, {3}, {4}Shape.data(), {4}Size * {5}}}",
                    Literal(port.tensor->name), static_cast<int>(type.dlpack.code), static_cast<int>(type.dlpack.bits),
                    port.rank(), port.constant, SizeOf(type.dtype)));
  }
  return fmt::format("{}", fmt::join(descriptions, ","));
}

// The members that set the shape of an open input, or tell that of an open output.
std::string ShapeMembers(const std::vector<Port>& inputs, const std::vector<Port>& outputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].IsOpen()) continue;
    text += fmt::format(
        "  HoneStatus resize_{0}(const std::array<int64_t, {1}>& shape) {{\n"
        "    return hone_resize(model_, {2}, shape.data(), {1});\n"
        "  }}\n",
        inputs[i].member, inputs[i].rank(), i);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].IsOpen()) continue;
    text += fmt::format(
        "  std::array<int64_t, {1}> shape_of_{0}() const {{\n"
        "    std::array<int64_t, {1}> shape = {{}};\n"
        "    DLTensor view;\n"
        "    if (hone_get_output(model_, {2}, &view) != HONE_OK) return shape;\n"
        "    for (size_t d = 0; d < shape.size(); ++d) shape[d] = view.shape[d];\n"
        "    return shape;\n"
        "  }}\n",
        outputs[i].member, outputs[i].rank(), i);
  }
  if (text.empty()) return text;
  return "\n  // The shape of an input for the next runs, within its range, and that of an output after a run; 0s "
         "where no\n"
         "  // package is loaded.\n" +
         text;
}

// The end of the function that compares a package with the header.
std::string Checks(const std::vector<Port>& inputs) {
  const std::string ports = "hone_check_ports(model, inputs.data(), inputs.size(), outputs.data(), outputs.size())";
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].IsOpen()) continue;
    text += fmt::format(
        "    if (status == HONE_OK) {{\n"
        "      status = hone_check_input_range(model, {0}, {1}Min.data(), {1}Shape.data(), {2});\n"
        "    }}\n",
        i, inputs[i].constant, inputs[i].rank());
  }
  if (text.empty()) return fmt::format("    return {};\n", ports);
  return fmt::format("    HoneStatus status = {};\n{}    return status;\n", ports, text);
}

// The header's text. Fill replaces the names in braces: {NAME} by the namespace, the others by text made from the
// ports.
constexpr std::string_view kTemplate = R"text(// Made by `hone compile --header`; do not edit.
// The inputs and outputs of a model. Needs libhone_runtime (hone.h).
#ifndef HONE_MODEL_{NAME}_H_
#define HONE_MODEL_{NAME}_H_

#include <hone.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {NAME} {

// The model, loaded from its package. Used by one thread at a time. After a failure hone_error() says why.
class Model {
 public:
{CONSTANTS}
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() { hone_free(model_); }

  // threads: 0 is as in hone.h. HONE_INVALID_ARGUMENT where the package is of a model with other inputs or outputs than
  // this header: compile both together.
  HoneStatus Load(const char* package, int32_t threads = 0) {
    const HoneLoadOptions options = {sizeof(HoneLoadOptions), threads, 0, nullptr};
    HoneModel* loaded = nullptr;
    HoneStatus status = hone_load(package, &options, &loaded);
    if (status == HONE_OK) status = Check(loaded);
    if (status != HONE_OK) {
      hone_free(loaded);
      return status;
    }
    hone_free(model_);
    model_ = loaded;
    return HONE_OK;
  }
  // Once loaded.
  HoneStatus Run() { return hone_run(model_); }
  HoneModel* get() const { return model_; }

  // Elements row by row; null where no package is loaded. Inputs are filled before Run and keep their values; outputs
  // are those of the last Run.
{MEMBERS}{SHAPES}
 private:
  static HoneStatus Check(const HoneModel* model) {
    const std::array<HonePort, {INPUT_COUNT}> inputs = {{INPUTS}};
    const std::array<HonePort, {OUTPUT_COUNT}> outputs = {{OUTPUTS}};
{CHECKS}  }
  void* Input(size_t index) {
    DLTensor view;
    return model_ != nullptr && hone_get_input(model_, index, &view) == HONE_OK ? view.data : nullptr;
  }
  const void* Output(size_t index) const {
    DLTensor view;
    return model_ != nullptr && hone_get_output(model_, index, &view) == HONE_OK ? view.data : nullptr;
  }

  HoneModel* model_ = nullptr;
};

}  // namespace {NAME}

#endif  // HONE_MODEL_{NAME}_H_
)text";

// Returns `text` with each {KEY} replaced by its value. Values are not searched for keys, because a model may call an
// input "{NAME}".
std::string Fill(std::string_view text, const std::map<std::string_view, std::string>& values) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    const auto value = end == std::string_view::npos ? values.end() : values.find(text.substr(at + 1, end - at - 1));
    result += value == values.end() ? text.substr(at, 1) : std::string_view(value->second);
    at = value == values.end() ? at + 1 : end + 1;
  }
  return result;
}

}  // namespace

std::string CppHeader(const std::string& model_name, std::span<const PackageProgram> programs) {
  const std::vector<Port> inputs = PortsOf(programs, programs.front().inputs, "input");
  const std::vector<Port> outputs = PortsOf(programs, programs.front().outputs, "output");
  std::string constants, members;
  for (size_t i = 0; i < inputs.size(); ++i) {
    constants += Constants(inputs[i], "Input");
    members += fmt::format("  {0}* {1}() {{ return static_cast<{0}*>(Input({2})); }}\n",
                           CppType(inputs[i].tensor->dtype), inputs[i].member, i);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    constants += Constants(outputs[i], "Output");
    members += fmt::format("  const {0}* {1}() const {{ return static_cast<const {0}*>(Output({2})); }}\n",
                           CppType(outputs[i].tensor->dtype), outputs[i].member, i);
  }
  return Fill(kTemplate, {{"NAME", NamespaceName(model_name)},
                          {"CONSTANTS", constants},
                          {"MEMBERS", members},
                          {"SHAPES", ShapeMembers(inputs, outputs)},
                          {"CHECKS", Checks(inputs)},
                          {"INPUTS", Descriptions(inputs)},
                          {"INPUT_COUNT", std::to_string(inputs.size())},
                          {"OUTPUTS", Descriptions(outputs)},
                          {"OUTPUT_COUNT", std::to_string(outputs.size())}});
}

}  // namespace hone::package
