// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <map>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

// A dimension's label: a letter, or kEllipsis plus the distance from the last dimension that "..." stands for.
using Label = int;
constexpr Label kEllipsis = 256;

struct Term {
  std::vector<Label> labels;
  size_t ellipsis = 0;  // position of "..." if has_ellipsis
  bool has_ellipsis = false;
};

absl::StatusOr<Term> ParseTerm(std::string_view text) {
  Term term;
  for (size_t k = 0; k < text.size(); ++k) {
    if (text[k] == ' ') continue;
    if (text.substr(k, 3) == "..." && !term.has_ellipsis) {
      term.has_ellipsis = true;
      term.ellipsis = term.labels.size();
      k += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[k])) != 0) {
      term.labels.push_back(text[k]);
    } else {
      return Malformed(fmt::format("'{}' is not a term of an equation", text));
    }
  }
  return term;
}

void ExpandEllipsis(Term& term, size_t dims) {
  if (!term.has_ellipsis) return;
  std::vector<Label> names;
  for (size_t k = dims; k-- > 0;) names.push_back(kEllipsis + static_cast<Label>(k));
  term.labels.insert(term.labels.begin() + static_cast<std::ptrdiff_t>(term.ellipsis), names.begin(), names.end());
}

struct Equation {
  std::vector<std::vector<Label>> operands;
  std::vector<Label> result;
  std::map<Label, Size> extents;
};

// Without "->", the result has the dimensions of "..." and then the letters that occur once, in alphabetical order.
std::vector<Label> ImplicitResult(const std::vector<std::vector<Label>>& operands, size_t ellipsis_dims) {
  std::map<Label, int> occurrences;
  for (const auto& labels : operands) {
    for (Label label : labels) ++occurrences[label];
  }
  std::vector<Label> result;
  for (size_t k = ellipsis_dims; k-- > 0;) result.push_back(kEllipsis + static_cast<Label>(k));
  for (const auto& [label, count] : occurrences) {
    if (label < kEllipsis && count == 1) result.push_back(label);
  }
  return result;
}

absl::Status BindExtents(const OpArgs& args, Equation& equation) {
  for (size_t k = 0; k < equation.operands.size(); ++k) {
    const Shape& shape = args.inputs[k]->shape;
    if (equation.operands[k].size() != shape.size()) {
      return Malformed(
          fmt::format("term {} names {} dimensions; input {} has {}", k, equation.operands[k].size(), k, shape.size()));
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      Size& extent = equation.extents.emplace(equation.operands[k][d], 1).first->second;
      if (extent != shape[d] && extent != 1 && shape[d] != 1) {
        return Malformed(
            fmt::format("dimension {} of input {} is {}, but the same label is {} elsewhere", d, k, shape[d], extent));
      }
      if (extent == 1) extent = shape[d];
    }
  }
  for (Label label : equation.result) {
    if (!equation.extents.contains(label)) return Malformed("the result has a label that no input has");
  }
  return absl::OkStatus();
}

absl::StatusOr<Equation> ParseEquation(const OpArgs& args) {
  const std::string text = args.String("equation", "");
  const size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  std::vector<Term> terms;
  size_t ellipsis_dims = 0;
  while (true) {
    const size_t comma = left.find(',');
    HONE_ASSIGN_OR_RETURN(Term term, ParseTerm(left.substr(0, comma)));
    terms.push_back(std::move(term));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (terms.size() != args.inputs.size()) {
    return Malformed(
        fmt::format("the equation '{}' has {} terms for {} inputs", text, terms.size(), args.inputs.size()));
  }
  Equation equation;
  std::vector<size_t> own_dims;
  for (size_t k = 0; k < terms.size(); ++k) {
    if (!args.Has(k)) return Malformed(fmt::format("input {} is missing", k));
    const size_t rank = Rank(args.inputs[k]);
    own_dims.push_back(terms[k].has_ellipsis && rank > terms[k].labels.size() ? rank - terms[k].labels.size() : 0);
    ellipsis_dims = std::max(ellipsis_dims, own_dims.back());
  }
  for (size_t k = 0; k < terms.size(); ++k) {
    ExpandEllipsis(terms[k], own_dims[k]);
    equation.operands.push_back(terms[k].labels);
  }
  if (arrow == std::string::npos) {
    equation.result = ImplicitResult(equation.operands, ellipsis_dims);
  } else {
    HONE_ASSIGN_OR_RETURN(Term result, ParseTerm(std::string_view(text).substr(arrow + 2)));
    ExpandEllipsis(result, ellipsis_dims);
    equation.result = result.labels;
  }
  std::vector<Label> sorted = equation.result;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return Malformed(fmt::format("the result of the equation '{}' repeats a label", text));
  }
  HONE_RETURN_IF_ERROR(BindExtents(args, equation));
  return equation;
}

struct Operand {
  Buffer buffer;
  std::vector<Label> labels;
};

bool Holds(const std::vector<Label>& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// The product of one or two operands, summed over all labels that are not in `result`.
Buffer Contract(StageBuilder& builder, const Equation& equation, std::span<const Operand> operands,
                const std::vector<Label>& result, DType dtype) {
  std::vector<Label> summed;
  for (const Operand& operand : operands) {
    for (Label label : operand.labels) {
      if (!Holds(result, label) && !Holds(summed, label)) summed.push_back(label);
    }
  }
  auto extents = [&](const std::vector<Label>& labels) {
    Shape dims;
    for (Label label : labels) dims.push_back(equation.extents.at(label));
    return dims;
  };
  return Reduce(builder, "einsum", dtype, extents(result), extents(summed), Reduction::kSum, [&](Indices i, Indices r) {
    std::map<Label, Expr> index;
    for (size_t k = 0; k < result.size(); ++k) index[result[k]] = i[k];
    for (size_t k = 0; k < summed.size(); ++k) index[summed[k]] = r[k];
    auto read = [&](const Operand& operand) {
      Exprs source;
      for (size_t d = 0; d < operand.labels.size(); ++d) {
        const bool one = operand.buffer->shape[d] == 1;
        source.push_back(one ? Expr(0) : index.at(operand.labels[d]));
      }
      return Read(operand.buffer, std::move(source));
    };
    Expr value = read(operands[0]);
    return operands.size() == 1 ? value : value * read(operands[1]);
  });
}

// Contracts operands from the left, two at a time. A label is summed as soon as no later operand and no output uses it.
OpResult Einsum(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  HONE_ASSIGN_OR_RETURN(Equation equation, ParseEquation(args));
  const DType dtype = args.inputs[0]->dtype;
  const size_t count = args.inputs.size();
  Operand left{args.inputs[0], equation.operands[0]};
  if (count == 1) return Buffers{Contract(builder, equation, {&left, 1}, equation.result, dtype)};
  for (size_t k = 1; k < count; ++k) {
    const Operand pair[] = {left, {args.inputs[k], equation.operands[k]}};
    if (k + 1 == count) return Buffers{Contract(builder, equation, pair, equation.result, dtype)};
    std::vector<Label> kept;
    for (const auto& [label, extent] : equation.extents) {
      bool needed = Holds(equation.result, label);
      for (size_t later = k + 1; later < count; ++later) needed = needed || Holds(equation.operands[later], label);
      if (needed && (Holds(pair[0].labels, label) || Holds(pair[1].labels, label))) kept.push_back(label);
    }
    left = {Contract(builder, equation, pair, kept, ComputeType(dtype)), kept};
  }
  return Malformed("there are no inputs");
}

// --- Det: Gaussian elimination, unrolled, one step per column.

constexpr int64_t kDeterminantSizeMax = 64;

struct Elimination {
  Buffer pivot;  // [batch...]: the pivot with the sign of the row exchange
  Buffer rest;   // [batch..., m-1, m-1]: the matrix below and right of it; null after the last step
};

Elimination Eliminate(StageBuilder& builder, const Buffer& a) {
  const DType wide = a->dtype;
  const Size m = a->shape.back();
  const Shape batch(a->shape.begin(), a->shape.end() - 2);
  auto at = [&](Indices i, const Expr& row, const Expr& column) {
    Exprs source(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch.size()));
    source.push_back(row);
    source.push_back(column);
    return Read(a, std::move(source));
  };
  auto magnitude = [&](Indices i, const Expr& row) { return MakeUnary(ir::UnaryOp::kAbs, at(i, row, Expr(0))); };
  Buffer largest = builder.Reduce("largest", wide, batch, {m}, Reduction::kMax,
                                  [&](Indices i, Indices r) { return magnitude(i, r[0]); });
  Buffer row = builder.Reduce("row", DType::kInt64, batch, {m}, Reduction::kMin, [&](Indices i, Indices r) {
    return MakeSelect(magnitude(i, r[0]) < ReadHere(largest, i), Expr(m - 1), r[0]);
  });
  auto chosen = [&](Indices i) {
    return MakeLoad(row, Exprs(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch.size())));
  };
  Elimination step;
  step.pivot = builder.Compute("pivot", wide, batch, [&](Indices i) {
    Expr value = at(i, chosen(i), Expr(0));
    return MakeSelect(Equals(chosen(i), Expr(0)), value, Negate(value));
  });
  if (m == 1) return step;
  Shape shape = batch;
  shape.insert(shape.end(), {m - 1, m - 1});
  step.rest = builder.Compute("eliminated", wide, shape, [&](Indices i) {
    const Expr one(1), zero(0);
    Expr below = i[batch.size()] + one, right = i[batch.size() + 1] + one;
    below = MakeSelect(Equals(below, chosen(i)), zero, below);  // the first row has replaced the chosen one
    Expr pivot = at(i, chosen(i), zero);
    Expr factor = MakeSelect(Equals(pivot, Number(wide, 0)), pivot, at(i, below, zero) / pivot);
    return at(i, below, right) - factor * at(i, chosen(i), right);
  });
  return step;
}

OpResult Det(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  if (Rank(x) < 2 || x->shape.back() != x->shape[Rank(x) - 2]) return Malformed("input 0 must be square matrices");
  HONE_ASSIGN_OR_RETURN(const int64_t size, FixedSize(x->shape.back(), "the number of rows"));
  if (size > kDeterminantSizeMax) {
    return Unsupported(
        fmt::format("input 0 has {} rows; the determinant of at most {} is supported", size, kDeterminantSizeMax));
  }
  const DType wide = ComputeType(x->dtype);
  Buffer rest = Map(builder, "matrix", wide, x->shape, [&](Indices i) { return ReadHere(x, i); });
  Buffers pivots;
  for (int64_t k = 0; k < size; ++k) {
    Elimination step = Eliminate(builder, rest);
    pivots.push_back(step.pivot);
    rest = step.rest;
  }
  return Buffers{Map(builder, "det", x->dtype, Shape(x->shape.begin(), x->shape.end() - 2), [&](Indices i) {
    Expr product = Number(wide, 1);
    for (const Buffer& pivot : pivots) product = product * ReadHere(pivot, i);
    return product;
  })};
}

constexpr OpDef kEinsumOps[] = {
    {"Det", Checked<Det, 1, Elements::kFloat>},
    {"Einsum", Checked<Einsum, 1, Elements::kNumber>},
};

}  // namespace

std::span<const OpDef> EinsumOps() { return kEinsumOps; }

}  // namespace hone::graph
