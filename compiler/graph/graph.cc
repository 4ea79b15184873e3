#include "compiler/graph/graph.h"

namespace hone::graph {

int64_t TensorType::elements() const {
  int64_t product = 1;
  for (int64_t extent : shape) product *= extent;
  return product;
}

}  // namespace hone::graph
