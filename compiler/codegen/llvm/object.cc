// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/codegen/backend.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/codegen/llvm/setup.h"
#include "fmt/format.h"

namespace hone::codegen {
namespace {

// Our loops are tiled, unrolled and vectorized already: what is left is to promote the register tile (sroa), to share
// addresses, and to hoist what does not change. LLVM's standard O3 takes three times as long and gains nothing on such
// code.
constexpr const char* kKernelPasses =
    "function(sroa,early-cse<memssa>,instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(loop-rotate,licm<allowspeculation>),early-cse<memssa>,instcombine<max-iterations=1;no-verify-fixpoint>,"
    "simplifycfg)";

std::string Optimize(llvm::Module* module, llvm::TargetMachine* machine, const target::Target& target, Effort effort) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager cgscc;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(cgscc);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, cgscc, modules);
  llvm::ModulePassManager passes;
  // For lanes LLVM's own unrolling makes registers of what a lane keeps in arrays.
  if (effort == Effort::kReference || target.facts().has_grid) {
    passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  } else if (llvm::Error error = builder.parsePassPipeline(passes, kKernelPasses)) {
    return llvm::toString(std::move(error));
  }
  passes.run(*module, modules);
  return "";
}

// The vector form of every width.
bool HasScalef(const llvm::TargetMachine& machine) {
  return machine.getTargetTriple().isX86() && machine.getMCSubtargetInfo()->checkFeatures("+avx512f,+avx512vl");
}

void SetAttributes(llvm::Module* module, const target::Target& target) {
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty()) function.addFnAttr("target-features", LlvmFeatures(target));
    if (!target.facts().has_grid) {
      function.addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
      // A large frame is touched page by page: where the stack ends a guard page is hit, never what lies behind it.
      function.addFnAttr("probe-stack", "inline-asm");
    }
    function.addFnAttr("no-builtins");
    function.addFnAttr("frame-pointer", "none");
  }
}

// Copies of groups, and what groups meet by, are words of PTX 8.0. LLVM writes the oldest version that knows the
// architecture, which is 7.8 for sm_90; other kernels keep it, for the drivers that know no newer one.
target::Target WithWordsFor(std::span<const ir::Func> funcs, target::Target target) {
  const bool groups_copy = std::ranges::any_of(funcs, [](const ir::Func& f) { return ir::HasGroupCopies(f.body); });
  if (groups_copy) target.features = "+ptx80";
  return target;
}

// Says of kernels how many groups share copies, for which LLVM 19 has no word: their launches need say nothing.
std::string NameSharingGroups(std::string ptx, std::span<const ir::Func> funcs) {
  for (const ir::Func& func : funcs) {
    const int64_t groups = ir::GroupsThatShare(func.body);
    if (groups == 1) continue;
    const size_t entry = ptx.find(fmt::format(".entry {}(", func.name)), facts = ptx.find(".reqntid", entry);
    HONE_CHECK(entry != std::string::npos && facts != std::string::npos);
    ptx.insert(facts, fmt::format(".explicitcluster\n.reqnctapercluster {}, 1, 1\n", groups));
  }
  return ptx;
}

}  // namespace

absl::StatusOr<std::string> EmitMachineCode(std::span<const ir::Func> funcs, const target::Target& target,
                                            Effort effort, Output output) {
  const std::unique_ptr<llvm::TargetMachine> machine = MakeTargetMachine(WithWordsFor(funcs, target));
  llvm::LLVMContext context;
  llvm::Module module("hone", context);
  module.setTargetTriple(Triple(target));
  module.setDataLayout(machine->createDataLayout());
  const bool fuse = effort == Effort::kKernel;
  if (!fuse) machine->Options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  const Scaling scaling = fuse && HasScalef(*machine) ? Scaling::kScalef : Scaling::kBits;
  for (const ir::Func& func : funcs) Emitter(&module, func, fuse, target, *machine, scaling).Run();
  SetAttributes(&module, target);
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if (llvm::verifyModule(module, &problem_stream))
    return absl::InternalError("generated LLVM IR is malformed: " + problem);
  if (std::string error = Optimize(&module, machine.get(), target, effort); !error.empty())
    return absl::InternalError("LLVM passes: " + error);
  if (output == Output::kLlvmIr) {
    std::string text;
    llvm::raw_string_ostream(text) << module;
    return text;
  }
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager emit;
  // Of PTX the text is the object.
  const bool object = output == Output::kObject && !target.facts().has_grid;
  const auto type = object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
  if (machine->addPassesToEmitFile(emit, stream, nullptr, type))
    return absl::InternalError("LLVM cannot emit code for " + Print(target));
  emit.run(module);
  std::string code(bytes.data(), bytes.size());
  return target.facts().has_grid ? NameSharingGroups(std::move(code), funcs) : code;
}

}  // namespace hone::codegen
