// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/custom_operators.h"

#include <algorithm>
#include <set>

#include "base/read_file.h"
#include "base/status.h"
#include "compiler/graph/convert_attribute.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/ir/index_bounds.h"
#include "compiler/ir/token_stream.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

constexpr std::string_view kOperatorWord = "operator";

// Whether the line begins the definition of an operator: the word and a quote.
bool BeginsOperator(std::string_view line) {
  const size_t start = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(start);
  if (!line.starts_with(kOperatorWord)) return false;
  line.remove_prefix(kOperatorWord.size());
  const size_t next = line.find_first_not_of(" \t");
  return next != std::string_view::npos && line[next] == '"';
}

// Whether the file is a text of operators: its first word, after comments, is `operator`.
bool IsOperatorText(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t start = bytes.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos) return false;
    bytes.remove_prefix(start);
    if (bytes.front() != '#') return bytes.starts_with(kOperatorWord);
    bytes.remove_prefix(std::min(bytes.find('\n'), bytes.size()));
  }
  return false;
}

// One operator of a text: its lines, with a line break for each line before them.
struct Section {
  int line = 1;
  std::string text;
};

absl::StatusOr<std::vector<Section>> SplitSections(std::string_view text) {
  std::vector<Section> sections;
  int line = 1;
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view content = text.substr(at, end - at);
    if (BeginsOperator(content)) sections.push_back({line, std::string(static_cast<size_t>(line - 1), '\n')});
    const size_t first = content.find_first_not_of(" \t\r");
    const bool is_blank = first == std::string_view::npos || content[first] == '#';
    if (sections.empty() && !is_blank) {
      return absl::InvalidArgumentError(
          fmt::format("line {}: the text must begin with operator \"DOMAIN\" \"NAME\"", line));
    }
    if (!sections.empty()) sections.back().text += std::string(content) + "\n";
    at = end + 1;
  }
  return sections;
}

// attribute alpha: f32 = 0.5
absl::StatusOr<OperatorExpression::Number> ParseNumber(ir::TokenStream& tokens) {
  OperatorExpression::Number number;
  HONE_ASSIGN_OR_RETURN(number.name, tokens.ExpectName("an attribute"));
  HONE_RETURN_IF_ERROR(tokens.Expect(":"));
  const ir::Token type = tokens.Next();
  const std::optional<ir::DType> dtype = ir::ParseDType(type.text);
  if (!dtype || (*dtype != ir::DType::kFloat32 && *dtype != ir::DType::kFloat64 && *dtype != ir::DType::kInt64)) {
    return ir::TokenStream::ErrorAt(type, "an attribute is of type f32, f64 or i64");
  }
  number.dtype = *dtype;
  if (!tokens.Accept("=")) return number;
  constexpr std::string_view kWhat = "the number that a node without the attribute has";
  if (*dtype == ir::DType::kInt64) {
    const bool is_negative = tokens.Accept("-");
    HONE_ASSIGN_OR_RETURN(const int64_t integer, tokens.ExpectInteger(kWhat));
    number.fallback = is_negative ? -integer : integer;
  } else {
    HONE_ASSIGN_OR_RETURN(number.fallback, tokens.ExpectDouble(kWhat));
  }
  return number;
}

// The text from the token on, with line breaks and blanks in place of what stands before it.
std::string TextFrom(const std::string& text, const ir::Token& token) {
  size_t start = 0;
  for (int line = 1; line < token.line; ++line) start = text.find('\n', start) + 1;
  const auto column = static_cast<size_t>(token.column - 1);
  return std::string(static_cast<size_t>(token.line - 1), '\n') + std::string(column, ' ') +
         text.substr(start + column);
}

absl::Status ParseSection(const Section& section, const std::string& path, CustomOperators& operators) {
  HONE_ASSIGN_OR_RETURN(ir::TokenStream tokens, ir::TokenStream::Make(section.text));
  HONE_RETURN_IF_ERROR(tokens.Expect(kOperatorWord));
  CustomOperators::Key key;
  const ir::Token at = tokens.Peek();
  HONE_ASSIGN_OR_RETURN(key.first, tokens.ExpectString("the operator's domain"));
  HONE_ASSIGN_OR_RETURN(key.second, tokens.ExpectString("the operator's name"));
  if (key.first == "ai.onnx") key.first.clear();
  if (key.first == "hone") return ir::TokenStream::ErrorAt(at, "domain 'hone' is internal to Hone; use another one");
  OperatorExpression expression;
  expression.place = fmt::format("{}: line {}", path, section.line);
  while (tokens.Accept("attribute")) {
    HONE_ASSIGN_OR_RETURN(OperatorExpression::Number number, ParseNumber(tokens));
    expression.numbers.push_back(std::move(number));
  }
  if (!tokens.PeekIs("workload")) return tokens.Error("expected 'attribute' or 'workload'");
  expression.workload_text = TextFrom(section.text, tokens.Peek());
  std::map<std::string, Attribute> any;  // the text must be right for some numbers
  for (const OperatorExpression::Number& number : expression.numbers) {
    if (number.fallback) continue;
    if (number.dtype == ir::DType::kInt64) {
      any[number.name] = int64_t{1};
    } else {
      any[number.name] = 1.0;
    }
  }
  HONE_RETURN_IF_ERROR(Instantiate(expression, any).status());
  operators.expressions[key].push_back(std::move(expression));
  return absl::OkStatus();
}

std::string Describe(const CustomOperators::Key& key) {
  return fmt::format("{}{}{}", key.first, key.first.empty() ? "" : ".", key.second);
}

// Adds the operators of `from`, of the file at `path`.
absl::Status Merge(CustomOperators from, const std::string& path, CustomOperators& all) {
  const auto twice = [&](const CustomOperators::Key& key) {
    return absl::InvalidArgumentError(
        fmt::format("{}: operator {} is defined twice; remove one definition", path, Describe(key)));
  };
  std::set<CustomOperators::Key> known;
  for (const auto& [key, function] : all.functions) known.emplace(std::get<0>(key), std::get<1>(key));
  for (const auto& [key, expressions] : all.expressions) known.insert(key);
  for (auto& [key, function] : from.functions) {
    const CustomOperators::Key name(std::get<0>(key), std::get<1>(key));
    if (known.contains(name)) return twice(name);
    all.functions.emplace(key, std::move(function));
  }
  for (auto& [key, expressions] : from.expressions) {
    if (known.contains(key)) return twice(key);
    all.expressions.emplace(key, std::move(expressions));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CustomOperators> ParseOperators(std::string_view text, const std::string& path) {
  CustomOperators operators;
  absl::StatusOr<std::vector<Section>> sections = SplitSections(text);
  if (!sections.ok()) return Annotate(sections.status(), path);
  for (const Section& section : *sections) {
    HONE_RETURN_IF_ERROR(Annotate(ParseSection(section, path, operators), path));
  }
  return operators;
}

absl::StatusOr<CustomOperators> ReadOperators(std::span<const std::string> paths) {
  CustomOperators all;
  for (const std::string& path : paths) {
    const absl::StatusOr<std::string> bytes = ReadWholeFile(path);
    if (!bytes.ok()) return Annotate(bytes.status(), fmt::format("{}: the file cannot be read", path));
    CustomOperators operators;
    if (IsOperatorText(*bytes)) {
      HONE_ASSIGN_OR_RETURN(operators, ParseOperators(*bytes, path));
    } else {
      absl::StatusOr<std::map<FunctionKey, RawFunction>> functions = ReadFunctions(*bytes);
      if (!functions.ok()) {
        return Annotate(functions.status(), fmt::format("{} (--operators)", path));
      }
      operators.functions = *std::move(functions);
    }
    HONE_RETURN_IF_ERROR(Merge(std::move(operators), path, all));
  }
  return all;
}

absl::StatusOr<ir::Workload> Instantiate(const OperatorExpression& expression,
                                         const std::map<std::string, Attribute>& attributes) {
  for (const auto& [name, value] : attributes) {
    if (std::ranges::find(expression.numbers, name, &OperatorExpression::Number::name) == expression.numbers.end()) {
      return absl::InvalidArgumentError(fmt::format("its definition has no attribute '{}'", name));
    }
  }
  std::map<std::string, ir::Expr> numbers;
  for (const OperatorExpression::Number& number : expression.numbers) {
    const auto given = attributes.find(number.name);
    const std::optional<Attribute> value = given != attributes.end() ? given->second : number.fallback;
    if (!value) return absl::InvalidArgumentError(fmt::format("attribute '{}' is missing", number.name));
    if (number.dtype == ir::DType::kInt64) {
      const std::optional<int64_t> integer = ConvertAttribute<int64_t>(*value);
      if (!integer) return absl::InvalidArgumentError(fmt::format("attribute '{}' must be an integer", number.name));
      numbers[number.name] = ir::MakeInt({number.dtype, 1}, *integer);
      continue;
    }
    const std::optional<double> real = ConvertAttribute<double>(*value);
    if (!real) return absl::InvalidArgumentError(fmt::format("attribute '{}' must be a number", number.name));
    numbers[number.name] = ir::MakeConst({number.dtype, 1}, *real);
  }
  HONE_ASSIGN_OR_RETURN(ir::Workload workload, ir::ParseWorkload(expression.workload_text, numbers));
  HONE_RETURN_IF_ERROR(ir::CheckIndices(workload));
  return workload;
}

std::optional<MatchedSizes> MatchInputs(const ir::Workload& workload, std::span<const TensorType> inputs) {
  if (inputs.size() != workload.params.size()) return std::nullopt;
  MatchedSizes values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::BufferNode& wanted = *workload.params[i].buffer;
    if (wanted.dtype != inputs[i].dtype || wanted.shape.size() != inputs[i].shape.size()) return std::nullopt;
    for (const ir::OpenSize& size : workload.sizes) {
      for (size_t d = 0; d < wanted.shape.size(); ++d) {
        if (wanted.shape[d] == ir::Size::Open(size)) values.try_emplace(size.name, inputs[i].shape[d]);
      }
    }
  }
  for (const ir::OpenSize& size : workload.sizes) {
    const auto value = values.find(size.name);
    if (value == values.end() || value->second.min() < size.min || value->second.max() > size.max) return std::nullopt;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Shape& wanted = workload.params[i].buffer->shape;
    for (size_t d = 0; d < wanted.size(); ++d) {
      if (wanted[d].Substitute(values) != inputs[i].shape[d]) return std::nullopt;
    }
  }
  return values;
}

absl::StatusOr<Node> ExpressionNode(const Graph& graph, const std::vector<ValueId>& inputs,
                                    const std::map<std::string, Attribute>& attributes, size_t outputs,
                                    const std::vector<OperatorExpression>& expressions) {
  std::vector<TensorType> types;
  std::string given, places;
  for (const ValueId input : inputs) {
    if (input < 0) return absl::InvalidArgumentError("an operator of --operators needs all its inputs, as tensors");
    types.push_back(graph.values[input].type);
    given += (given.empty() ? "" : ", ") + Print(types.back());
  }
  for (const OperatorExpression& expression : expressions) {
    const absl::StatusOr<ir::Workload> workload = Instantiate(expression, attributes);
    if (!workload.ok()) return Annotate(workload.status(), expression.place);
    places += (places.empty() ? "" : ", ") + expression.place;
    if (!MatchInputs(*workload, types)) continue;
    if (outputs > workload->outputs.size()) {
      return absl::InvalidArgumentError(fmt::format("the node has {} outputs, and its definition ({}) has {}", outputs,
                                                    expression.place, workload->outputs.size()));
    }
    return Node{.op = "Expression",
                .domain = "hone",
                .opset = kOwnOpset,
                .inputs = inputs,
                .attributes = {{"workload", ir::Print(*workload)}, {"label", workload->op}}};
  }
  return absl::InvalidArgumentError(fmt::format(
      "its inputs are {}, and no definition takes them ({}); add a definition for these types", given, places));
}

}  // namespace hone::graph
