// SPDX-License-Identifier: Apache-2.0
// Funcs to machine code of CPUs, and to PTX: LLVM IR by the emitters, LLVM's passes, and its code generation.
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "compiler/codegen/backend.h"
#include "compiler/codegen/llvm/cpu_emitter.h"
#include "compiler/codegen/llvm/ptx_emitter.h"
#include "compiler/codegen/llvm/setup.h"
#include "fmt/format.h"

namespace hone::codegen {
namespace {

// Scheduled loops are tiled, unrolled and vectorized already. These passes promote the register tile (sroa), share
// addresses and hoist invariants. LLVM's standard O3 takes three times as long and gains nothing on such code.
constexpr const char* kKernelPasses =
    "function(sroa,early-cse<memssa>,instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(loop-rotate,licm<allowspeculation>),early-cse<memssa>,instcombine<max-iterations=1;no-verify-fixpoint>,"
    "simplifycfg)";

// One module of LLVM IR on its way to code.
class ModuleBuilder {
 public:
  explicit ModuleBuilder(const target::Target& target)
      : target_(target), machine_(MakeTargetMachine(target)), module_("hone", context_) {
    module_.setTargetTriple(Triple(target));
    module_.setDataLayout(machine_->createDataLayout());
  }
  llvm::Module* module() { return &module_; }
  llvm::TargetMachine& machine() { return *machine_; }

  // Attributes that every function of every target has.
  void SetCommonAttributes(const target::Target& target);
  // Checks the module, and runs passes on it: those named by `pipeline`, or LLVM's O2 if it is null.
  absl::Status Optimize(const char* pipeline);
  std::string Text() const;
  absl::StatusOr<std::string> Generate(llvm::CodeGenFileType type);

 private:
  const target::Target& target_;
  const std::unique_ptr<llvm::TargetMachine> machine_;
  llvm::LLVMContext context_;
  llvm::Module module_;
};

void ModuleBuilder::SetCommonAttributes(const target::Target& target) {
  for (llvm::Function& function : module_) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", target.cpu);
    if (const std::string features = LlvmFeatures(target); !features.empty()) {
      function.addFnAttr("target-features", features);
    }
    function.addFnAttr("no-builtins");
    function.addFnAttr("frame-pointer", "none");
  }
}

absl::Status ModuleBuilder::Optimize(const char* pipeline) {
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if (llvm::verifyModule(module_, &problem_stream))
    return absl::InternalError("generated LLVM IR is malformed: " + problem);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager cgscc;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine_.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(cgscc);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, cgscc, modules);
  llvm::ModulePassManager passes;
  if (pipeline == nullptr) {
    passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  } else if (llvm::Error error = builder.parsePassPipeline(passes, pipeline)) {
    return absl::InternalError("LLVM cannot parse the list of passes: " + llvm::toString(std::move(error)));
  }
  passes.run(module_, modules);
  return absl::OkStatus();
}

std::string ModuleBuilder::Text() const {
  std::string text;
  llvm::raw_string_ostream(text) << module_;
  return text;
}

absl::StatusOr<std::string> ModuleBuilder::Generate(llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine_->addPassesToEmitFile(passes, stream, nullptr, type))
    return absl::InternalError("LLVM cannot emit code for " + Print(target_));
  passes.run(module_);
  return std::string(bytes.data(), bytes.size());
}

// Whether the CPU multiplies vectors of every width by a power of two in one instruction.
bool HasScalef(const llvm::TargetMachine& machine) {
  return machine.getTargetTriple().isX86() && machine.getMCSubtargetInfo()->checkFeatures("+avx512f,+avx512vl");
}

// Bulk copies, and barriers between groups, need PTX 8.0. LLVM writes the oldest version that knows the
// architecture, which is 7.8 for sm_90. Other kernels keep that one, because drivers of CUDA 11 know no newer.
target::Target WithPtxVersionFor(std::span<const ir::Func> funcs, target::Target target) {
  const bool groups_copy = std::ranges::any_of(funcs, [](const ir::Func& f) { return ir::HasBulkCopies(f.body); });
  if (groups_copy) target.features = "+ptx80";
  return target;
}

// Adds the cluster size, which LLVM 19 has no attribute for, to kernels whose groups share copies. Their launches then
// need no attribute.
std::string AddClusterSizes(std::string ptx, std::span<const ir::Func> funcs) {
  for (const ir::Func& func : funcs) {
    const int64_t groups = ir::CountSharingGroups(func.body);
    if (groups == 1) continue;
    const size_t entry = ptx.find(fmt::format(".entry {}(", func.name)), facts = ptx.find(".reqntid", entry);
    HONE_CHECK(entry != std::string::npos && facts != std::string::npos);
    ptx.insert(facts, fmt::format(".explicitcluster\n.reqnctapercluster {}, 1, 1\n", groups));
  }
  return ptx;
}

}  // namespace

absl::StatusOr<std::string> EmitCpuCode(std::span<const ir::Func> funcs, const target::Target& target, Effort effort,
                                        Output output) {
  ModuleBuilder builder(target);
  const bool fuse = effort == Effort::kKernel;
  if (!fuse) builder.machine().Options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  const Scaling scaling = fuse && HasScalef(builder.machine()) ? Scaling::kScalef : Scaling::kBits;
  for (const ir::Func& func : funcs) CpuEmitter(builder.module(), func, {fuse, scaling}, builder.machine()).Run();
  builder.SetCommonAttributes(target);
  for (llvm::Function& function : *builder.module()) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
    // A large frame is touched page by page: a stack overflow hits the guard page, and never the memory behind it.
    function.addFnAttr("probe-stack", "inline-asm");
  }
  HONE_RETURN_IF_ERROR(builder.Optimize(effort == Effort::kReference ? nullptr : kKernelPasses));
  if (output == Output::kLlvmIr) return builder.Text();
  const bool is_object = output == Output::kObject;
  return builder.Generate(is_object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile);
}

absl::StatusOr<std::string> EmitPtx(std::span<const ir::Func> funcs, const target::Target& target, Effort effort,
                                    Output output) {
  const target::Target with_version = WithPtxVersionFor(funcs, target);
  ModuleBuilder builder(with_version);
  const bool fuse = effort == Effort::kKernel;
  if (!fuse) builder.machine().Options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  for (const ir::Func& func : funcs) PtxEmitter(builder.module(), func, {fuse, Scaling::kBits}, target).Run();
  builder.SetCommonAttributes(target);
  // O2, because LLVM's own unrolling makes registers of the arrays that a lane keeps.
  HONE_RETURN_IF_ERROR(builder.Optimize(nullptr));
  if (output == Output::kLlvmIr) return builder.Text();
  // The object is the text.
  HONE_ASSIGN_OR_RETURN(std::string ptx, builder.Generate(llvm::CodeGenFileType::AssemblyFile));
  return AddClusterSizes(std::move(ptx), funcs);
}

}  // namespace hone::codegen
