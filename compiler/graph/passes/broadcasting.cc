#include "compiler/graph/passes/broadcasting.h"

#include <string>
#include <string_view>

namespace hone::graph {
namespace {

// Each name between spaces.
constexpr std::string_view kOperators =
    " Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast Ceil Celu"
    " Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu"
    " Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid "
    "Sign"
    " Silu Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor ";

}  // namespace

bool IsBroadcasting(const Node& node) {
  if (!node.domain.empty() && node.domain != "hone") return false;
  return kOperators.find(" " + node.op + " ") != std::string_view::npos;
}

}  // namespace hone::graph
