#include "tests/unit/space/compiled.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "base/random.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/codegen/kernel.h"
#include "compiler/ir/interpret.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"

namespace hone::testing {
namespace {

constexpr size_t kCanaryBytes = 256;
constexpr unsigned char kCanary = 0xA5;

// Aligned bytes with a canary on both sides.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : bytes_(static_cast<size_t>(bytes)), memory_(nullptr, std::free) {
    const size_t total = (bytes_ + 2 * kCanaryBytes + 63) / 64 * 64;
    memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(64, total)));
    std::memset(memory_.get(), kCanary, total);
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(memory_.get() + kCanaryBytes); }
  std::span<std::byte> span() { return {data(), bytes_}; }
  bool Intact() const {
    for (size_t i = 0; i < kCanaryBytes; ++i) {
      if (memory_.get()[i] != kCanary || memory_.get()[kCanaryBytes + bytes_ + i] != kCanary) return false;
    }
    return true;
  }

 private:
  size_t bytes_;
  std::unique_ptr<unsigned char, void (*)(void*)> memory_;
};

template <typename T>
void Fill(std::byte* data, int64_t count, double low, double high, Random* random) {
  for (int64_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(low + (high - low) * random->Uniform());
    std::memcpy(data + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  }
}

void FillParam(const ir::Param& param, std::byte* data, Random* random) {
  const int64_t n = ir::NumElements(*param.buffer);
  switch (param.buffer->dtype) {
    case ir::DType::kFloat32:
      return Fill<float>(data, n, param.low, param.high, random);
    case ir::DType::kFloat64:
      return Fill<double>(data, n, param.low, param.high, random);
    case ir::DType::kInt64:
      return Fill<int64_t>(data, n, param.low, param.high, random);
    case ir::DType::kInt32:
      return Fill<int32_t>(data, n, param.low, param.high, random);
    case ir::DType::kBool:
      return Fill<uint8_t>(data, n, 0, 2, random);
    case ir::DType::kInt8:
      return Fill<int8_t>(data, n, param.low, param.high, random);
    case ir::DType::kUInt8:
      return Fill<uint8_t>(data, n, 0, 200, random);
    default:
      std::memset(data, 0, static_cast<size_t>(ir::NumBytes(*param.buffer)));
      return;
  }
}

double ElementOf(const std::byte* data, ir::DType dtype, int64_t i) {
  const auto get = [&](auto value) {
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof value), sizeof value);
    return static_cast<double>(value);
  };
  switch (dtype) {
    case ir::DType::kFloat32:
      return get(float{});
    case ir::DType::kFloat64:
      return get(double{});
    case ir::DType::kInt64:
      return get(int64_t{});
    case ir::DType::kInt32:
      return get(int32_t{});
    default:
      return get(uint8_t{});
  }
}

absl::Status Compare(const ir::BufferNode& buffer, const std::byte* expected, const std::byte* actual,
                     double tolerance) {
  double largest = 0;
  for (int64_t i = 0; i < ir::NumElements(buffer); ++i) {
    const double e = ElementOf(expected, buffer.dtype, i);
    if (std::isfinite(e)) largest = std::max(largest, std::fabs(e));
  }
  const double allowed = ir::IsFloat(buffer.dtype) ? tolerance * std::max(largest, 1e-6) : 0;
  for (int64_t i = 0; i < ir::NumElements(buffer); ++i) {
    const double e = ElementOf(expected, buffer.dtype, i), a = ElementOf(actual, buffer.dtype, i);
    if (e == a || (std::isnan(e) && std::isnan(a)) || std::fabs(e - a) <= allowed) continue;
    return absl::DataLossError(fmt::format("{}[{}] is {}, should be {}", buffer.name, i, a, e));
  }
  return absl::OkStatus();
}

// The workload's params filled with values, and what the interpreter makes of them.
struct Problem {
  std::vector<Guarded> params;
  std::vector<ir::Bytes> expected;
};

absl::StatusOr<Problem> MakeProblem(const ir::Workload& workload) {
  Problem problem;
  Random random(7);
  std::vector<std::span<const std::byte>> spans;
  for (const ir::Param& param : workload.params) {
    problem.params.emplace_back(ir::NumBytes(*param.buffer));
    FillParam(param, problem.params.back().data(), &random);
    spans.emplace_back(problem.params.back().span());
  }
  HONE_ASSIGN_OR_RETURN(problem.expected, ir::Interpret(workload, spans));
  return problem;
}

std::vector<Guarded> Allocate(const std::vector<int64_t>& bytes) {
  std::vector<Guarded> buffers;
  for (const int64_t b : bytes) buffers.emplace_back(b);
  return buffers;
}

std::vector<int64_t> OutputBytes(const ir::Workload& workload) {
  std::vector<int64_t> bytes;
  for (const ir::Buffer& buffer : workload.outputs) bytes.push_back(ir::NumBytes(*buffer));
  return bytes;
}

absl::Status CompareAll(const ir::Workload& workload, const Problem& problem, std::vector<Guarded>& packed,
                        std::vector<Guarded>& outputs, double tolerance) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(Compare(*workload.outputs[i], problem.expected[i].data(), outputs[i].data(), tolerance));
  }
  for (const auto* group : {&problem.params, static_cast<const std::vector<Guarded>*>(&packed),
                            static_cast<const std::vector<Guarded>*>(&outputs)}) {
    for (const Guarded& buffer : *group) {
      if (!buffer.Intact()) return absl::DataLossError("wrote outside of a buffer");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<void*> LoadShared(const std::string& bytes) {
  const int fd = memfd_create("kernel", MFD_CLOEXEC);
  if (fd < 0 || write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return absl::InternalError("memfd");
  void* handle = dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  if (handle == nullptr) return absl::InternalError(dlerror());
  return handle;
}

}  // namespace

absl::Status CheckCompiled(const ir::Workload& workload, const schedule::Schedule& schedule,
                           const codegen::Target& target, double tolerance, int threads) {
  HONE_ASSIGN_OR_RETURN(Problem problem, MakeProblem(workload));
  HONE_ASSIGN_OR_RETURN(const codegen::Kernel kernel, codegen::CompileKernel(workload, schedule, target, "kernel"));
  HONE_ASSIGN_OR_RETURN(const std::string shared, codegen::LinkShared(std::vector<std::string>{kernel.object}));
  HONE_ASSIGN_OR_RETURN(void* handle, LoadShared(shared));
  std::vector<Guarded> packed = Allocate(kernel.packed_bytes), outputs = Allocate(OutputBytes(workload));
  std::vector<Guarded> workspaces = Allocate({kernel.workspace_bytes, kernel.prepare_workspace_bytes});
  std::vector<void*> arguments;
  for (Guarded& g : problem.params) arguments.push_back(g.data());
  for (Guarded& g : packed) arguments.push_back(g.data());
  ThreadPool pool(threads);
  if (!kernel.prepare_symbol.empty()) {
    reinterpret_cast<HoneKernel>(dlsym(handle, kernel.prepare_symbol.c_str()))(arguments.data(), workspaces[1].data(),
                                                                               pool.parallel());
  }
  for (Guarded& g : outputs) arguments.push_back(g.data());
  reinterpret_cast<HoneKernel>(dlsym(handle, kernel.symbol.c_str()))(arguments.data(), workspaces[0].data(),
                                                                     pool.parallel());
  absl::Status status = CompareAll(workload, problem, packed, outputs, tolerance);
  if (status.ok() && (!workspaces[0].Intact() || !workspaces[1].Intact()))
    status = absl::DataLossError("wrote outside of the workspace");
  dlclose(handle);
  return status;
}

absl::Status CheckLowered(const ir::Workload& workload, const schedule::Schedule& schedule, double tolerance) {
  HONE_ASSIGN_OR_RETURN(Problem problem, MakeProblem(workload));
  HONE_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(workload, schedule));
  HONE_ASSIGN_OR_RETURN(const passes::Loops loops, passes::Lower(state, "kernel", {.verify = true, .dump = {}}));
  std::vector<int64_t> packed_bytes;
  for (const ir::Buffer& buffer : loops.packed) packed_bytes.push_back(ir::NumBytes(*buffer));
  std::vector<Guarded> packed = Allocate(packed_bytes), outputs = Allocate(OutputBytes(workload));
  std::vector<std::span<std::byte>> arguments;
  for (Guarded& g : problem.params) arguments.push_back(g.span());
  for (Guarded& g : packed) arguments.push_back(g.span());
  if (loops.prepare.body.defined()) HONE_RETURN_IF_ERROR(ir::Interpret(loops.prepare, arguments));
  for (Guarded& g : outputs) arguments.push_back(g.span());
  HONE_RETURN_IF_ERROR(ir::Interpret(loops.main, arguments));
  return CompareAll(workload, problem, packed, outputs, tolerance);
}

}  // namespace hone::testing
