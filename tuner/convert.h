// The compiler's values as messages of the protocol. The only place of the tuner that knows both.
#ifndef HONE_TUNER_CONVERT_H_
#define HONE_TUNER_CONVERT_H_

#include <string>

#include "compiler/ir/workload.h"
#include "compiler/target/target.h"
#include "hone/v1/measure.pb.h"
#include "tuner/build_pool.h"

namespace hone::tuner {

// A batch of the workload without candidates: identity, buffers, tolerance, requirements.
v1::Batch DescribeWorkload(const ir::Workload& workload, const target::Target& target);
v1::DType ToProto(ir::DType dtype);
v1::Kernel ToProto(const KernelInterface& kernel, const CodeRange& code);
v1::Failure ToProto(const BuiltCandidate& failed);

}  // namespace hone::tuner

#endif  // HONE_TUNER_CONVERT_H_
