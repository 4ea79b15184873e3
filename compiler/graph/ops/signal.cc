// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

// Fourier transforms as products with a matrix of sines and cosines. They are summed in f64: where waves cancel, f32
// sums would be less accurate than the fast transforms of other implementations.

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;
using ir::Reduction;

// The factors of a transform: e^(i angle) with angle = 2 pi k n / length for a real component, and i times that for an
// imaginary one. k n is reduced modulo length first, so that the angle keeps its fraction. The factors depend on
// constants only and are computed once, before the model runs.
class Waves {
 public:
  Waves(StageBuilder& builder, int64_t length, int64_t points, int64_t bins, int64_t components, bool inverse)
      : length_(length), is_matrix_(components * points * bins <= kMatrixElementsMax) {
    const double unit = (inverse ? 2 : -2) * M_PI / static_cast<double>(length);
    const auto wave = [&](const Expr& component, const Expr& turn, const Expr& part) {
      const Expr angle = To(DType::kFloat64, turn) * Number(DType::kFloat64, unit);
      const Expr cosine = Apply(Intrinsic::kCos, angle), sine = Apply(Intrinsic::kSin, angle);
      const Expr real = MakeSelect(Equals(part, Expr(0)), cosine, sine);
      if (components == 1) return real;
      return MakeSelect(Equals(component, Expr(0)), real, MakeSelect(Equals(part, Expr(0)), Negate(sine), cosine));
    };
    const Shape shape = is_matrix_ ? Shape{components, points, bins, 2} : Shape{components, length, 2};
    buffer_ = builder.Compute("waves", DType::kFloat64, shape, [&](Indices i) {
      return is_matrix_ ? wave(i[0], FloorMod(i[1] * i[2], Expr(length)), i[3]) : wave(i[0], i[1], i[2]);
    });
  }

  // The factor by which this component of element n contributes to part 0 (real) or 1 (imaginary) of bin k.
  Expr At(const Expr& component, const Expr& n, const Expr& k, const Expr& part) const {
    if (is_matrix_) return MakeLoad(buffer_, {component, n, k, part});
    return MakeLoad(buffer_, {component, FloorMod(k * n, Expr(length_)), part});
  }

 private:
  static constexpr int64_t kMatrixElementsMax = 1 << 22;  // 64 MiB; larger transforms use a table of one period

  int64_t length_;
  bool is_matrix_;
  Buffer buffer_;
};

absl::StatusOr<int64_t> OneInt(const OpArgs& args, size_t input) {
  HONE_ASSIGN_OR_RETURN(Dims numbers, args.ConstantInts(input));
  if (numbers.size() != 1) return Malformed(fmt::format("input {} must be one number", input));
  return numbers[0];
}

struct Transform {
  size_t axis = 1;
  int64_t length = 0;
  bool inverse = false, onesided = false;
  // One side of a spectrum has the bins that determine the others of a real signal. An inverse transform reads it, and
  // its result is real.
  bool IsToReal() const { return inverse && onesided; }
  int64_t bins() const { return onesided && !inverse ? length / 2 + 1 : length; }
};

// The axis is an attribute (default 1) before opset 20, and an input (default -2) since.
absl::StatusOr<Transform> ReadTransform(const OpArgs& args) {
  const Buffer& x = args.inputs[0];
  if (Rank(x) < 2 || (x->shape.back() != 1 && x->shape.back() != 2)) {
    return Malformed("the last dimension of input 0 must be 1 (real) or 2 (complex)");
  }
  int64_t axis = args.Int("axis", args.node.opset >= 20 ? -2 : 1);
  if (args.Has(2)) {
    HONE_ASSIGN_OR_RETURN(axis, OneInt(args, 2));
  }
  Transform transform;
  HONE_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, Rank(x)));
  if (axis + 1 == static_cast<int64_t>(Rank(x)))
    return Malformed("the axis must not be the last, which holds the real and imaginary parts");
  transform.axis = static_cast<size_t>(axis);
  transform.inverse = args.Int("inverse", 0) != 0;
  transform.onesided = args.Int("onesided", 0) != 0;
  if (transform.IsToReal() && x->shape.back() != 2) {
    return Malformed("a one-sided inverse transform needs complex numbers in input 0");
  }
  HONE_ASSIGN_OR_RETURN(const int64_t bins, FixedSize(x->shape[transform.axis], "the transformed dimension"));
  transform.length = transform.IsToReal() ? 2 * (bins - 1) : bins;
  if (args.Has(1)) {
    HONE_ASSIGN_OR_RETURN(transform.length, OneInt(args, 1));
  }
  if (transform.length < 1)
    return Malformed(fmt::format("the transform has {} points; it must have 1 or more", transform.length));
  return transform;
}

// The inverse transform of one side of a spectrum: every bin with a mirror image on the other side counts twice.
Buffer EmitToReal(StageBuilder& builder, const Buffer& x, const Transform& transform) {
  const DType wide = DType::kFloat64;
  const int64_t length = transform.length, bins = std::min(length / 2 + 1, x->shape[transform.axis].value());
  const Waves waves(builder, length, bins, length, 2, true);
  Shape shape = x->shape;
  shape[transform.axis] = length;
  shape.back() = 1;
  return Reduce(builder, "dft", wide, shape, {bins, 2}, Reduction::kSum, [&](Indices i, Indices r) {
    Exprs source(i.begin(), i.end());
    source[transform.axis] = r[0];
    source.back() = r[1];
    const Expr single = Equals(r[0], Expr(0)) || Equals(r[0] * Expr(2), Expr(length));
    const Expr value = ReadAs(wide, x, source) * waves.At(r[1], r[0], i[transform.axis], Expr(0));
    return value * MakeSelect(single, Number(wide, 1), Number(wide, 2));
  });
}

Buffer EmitToComplex(StageBuilder& builder, const Buffer& x, const Transform& transform) {
  const DType wide = DType::kFloat64;
  const int64_t points = std::min(transform.length, x->shape[transform.axis].value());  // the others are 0
  const int64_t components = x->shape.back().value();
  const Waves waves(builder, transform.length, points, transform.bins(), components, transform.inverse);
  Shape shape = x->shape;
  shape[transform.axis] = transform.bins();
  shape.back() = 2;
  return Reduce(builder, "dft", wide, shape, {points, components}, Reduction::kSum, [&](Indices i, Indices r) {
    Exprs source(i.begin(), i.end());
    source[transform.axis] = r[0];
    source.back() = r[1];
    return ReadAs(wide, x, source) * waves.At(r[1], r[0], i[transform.axis], i[i.size() - 1]);
  });
}

OpResult Dft(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(Transform transform, ReadTransform(args));
  const Buffer& x = args.inputs[0];
  const DType wide = DType::kFloat64;
  const Buffer sum = transform.IsToReal() ? EmitToReal(builder, x, transform) : EmitToComplex(builder, x, transform);
  const double divisor = transform.inverse ? static_cast<double>(transform.length) : 1;
  return Buffers{
      Map(builder, "scale", x->dtype, sum->shape, [&](Indices i) { return ReadHere(sum, i) / Number(wide, divisor); })};
}

// STFT, transforms of overlapping windows: [batch, length, 1 or 2] to [batch, frames, bins, 2].
OpResult Stft(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  if (Rank(x) != 3 || (x->shape[2] != 1 && x->shape[2] != 2))
    return Malformed("input 0 must be [batch, length, 1 or 2]");
  HONE_ASSIGN_OR_RETURN(int64_t step, OneInt(args, 1));
  int64_t length = args.Has(2) ? ir::NumElements(*args.inputs[2]) : 0;
  if (args.Has(3)) {
    HONE_ASSIGN_OR_RETURN(length, OneInt(args, 3));
  }
  if (step < 1 || length < 1 || !AlwaysAtMost(length, x->shape[1])) {
    return Malformed(fmt::format("frames of {} every {} do not fit a signal of {}", length, step, x->shape[1]));
  }
  if (args.Has(2) && (args.inputs[2]->shape != Shape{length} || !ir::IsFloat(args.inputs[2]->dtype))) {
    return Malformed("the window (input 2) must have one float per element of a frame");
  }
  const int64_t components = x->shape[2].value();
  const bool onesided = args.Int("onesided", 1) != 0 && components == 1;
  const DType wide = DType::kFloat64;
  const int64_t bins = onesided ? length / 2 + 1 : length;
  const Shape shape = {x->shape[0], (x->shape[1] - length) / step + 1, bins, 2};
  const Waves waves(builder, length, length, bins, components, false);
  Buffer signal = x;
  if (args.Has(2)) {
    signal = builder.Compute("windowed", wide, {x->shape[0], shape[1], length, components}, [&](Indices i) {
      return ReadAs(wide, x, {i[0], i[1] * Expr(step) + i[2], i[3]}) * ReadAs(wide, args.inputs[2], {i[2]});
    });
  }
  Buffer sum = Reduce(builder, "stft", wide, shape, {length, components}, Reduction::kSum, [&](Indices i, Indices r) {
    const Expr value =
        args.Has(2) ? Read(signal, {i[0], i[1], r[0], r[1]}) : ReadAs(wide, x, {i[0], i[1] * Expr(step) + r[0], r[1]});
    return value * waves.At(r[1], r[0], i[2], i[3]);
  });
  return Buffers{Map(builder, "narrow", x->dtype, shape, [&](Indices i) { return ReadHere(sum, i); })};
}

// Triangular filters, equally spaced on the mel scale: the spectrum bins at which each begins, peaks and ends.
OpResult MelWeightMatrix(const OpArgs& args, StageBuilder& builder) {
  double numbers[5];  // mel bins, points of the transform, sample rate, lowest and highest frequency
  for (size_t k = 0; k < 5; ++k) {
    HONE_ASSIGN_OR_RETURN(std::vector<double> input, ConstantNumbers(args, k));
    if (input.size() != 1) return Malformed(fmt::format("input {} must be one number", k));
    numbers[k] = input[0];
  }
  constexpr double kMost = 1 << 20,
                   kFar = 1 << 30;  // limits on the number of bins, and on an edge's position among them
  if (!(numbers[0] >= 1 && numbers[0] <= kMost && numbers[1] >= 0 && numbers[1] <= kMost && numbers[2] > 0)) {
    return Malformed("the numbers of bins and points and the sample rate must be positive");
  }
  HONE_ASSIGN_OR_RETURN(DType dtype, FromOnnxType(args.Int("output_datatype", 1)));
  const int64_t filters = static_cast<int64_t>(numbers[0]), bins = static_cast<int64_t>(numbers[1]) / 2 + 1;
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(numbers[3]), step = (mel(numbers[4]) - low) / static_cast<double>(filters + 2);
  Dims edges;
  for (int64_t k = 0; k < filters + 2; ++k) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(k) * step + low) / 2595) - 1);
    const double edge = std::floor((numbers[1] + 1) * hertz / numbers[2]);
    edges.push_back(static_cast<int64_t>(std::min(std::max(-kFar, edge), kFar)));
  }
  Buffer table = builder.Compute("edges", DType::kInt64, {filters + 2}, [&](Indices i) { return Table(i[0], edges); });
  return Buffers{Map(builder, "mel", dtype, {bins, filters}, [&](Indices i) {
    const DType f32 = DType::kFloat32;
    const Expr& bin = i[0];
    auto edge = [&](int64_t k) { return MakeLoad(table, {i[1] + Expr(k)}); };
    auto ratio = [&](const Expr& part, const Expr& whole) { return To(f32, part) / To(f32, whole); };
    Expr rising = MakeSelect(Equals(edge(1), edge(0)), Number(f32, 1), ratio(bin - edge(0), edge(1) - edge(0)));
    Expr falling = ratio(edge(2) - bin, edge(2) - edge(1));
    return MakeSelect(bin >= edge(1) && bin < edge(2), falling,
                      MakeSelect(bin >= edge(0) && bin <= edge(1), rising, Number(f32, 0)));
  })};
}

constexpr OpDef kSignalOps[] = {
    {"DFT", Checked<Dft, 1, Elements::kFloat>},
    {"MelWeightMatrix", Checked<MelWeightMatrix, 5>},
    {"STFT", Checked<Stft, 2, Elements::kFloat>},
};

}  // namespace

std::span<const OpDef> SignalOps() { return kSignalOps; }

}  // namespace hone::graph
