// SPDX-License-Identifier: Apache-2.0
// Turns expressions of the IR into LLVM values: the part that every back end made with LLVM has in common.
//
// Start at EmitExpr. Statements: func_emitter.h; operators on LLVM values: arithmetic.h. A back end overrides the
// virtual functions for what its machine does better. Their defaults need no C library, no masked moves and no
// alignment beyond an element's. Private to codegen/llvm.
#ifndef HONE_COMPILER_CODEGEN_LLVM_EXPR_EMITTER_H_
#define HONE_COMPILER_CODEGEN_LLVM_EXPR_EMITTER_H_

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/codegen/llvm/arithmetic.h"
#include "compiler/codegen/llvm/math.h"
#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/stmt.h"

namespace hone::codegen {

using Values = std::vector<llvm::Value*>;

// How a whole kernel is made, the same for all of its funcs.
struct EmitOptions {
  bool fuse = true;                  // the back end may fuse a multiply and an add
  Scaling scaling = Scaling::kBits;  // how exp multiplies by a power of two
};

class ExprEmitter {
 public:
  // Where a buffer lies in the LLVM function being emitted.
  struct Place {
    llvm::Value* pointer;
    llvm::MDNode* scope;  // alias scope of the buffer: no two buffers overlap
  };
  using Places = std::map<const ir::BufferNode*, Place>;
  using Variables = std::map<std::string, llvm::Value*, std::less<>>;

  ExprEmitter(const ExprEmitter&) = delete;
  ExprEmitter& operator=(const ExprEmitter&) = delete;
  virtual ~ExprEmitter() = default;

  // The value of e at the insertion point. A node that several expressions of one statement share is emitted once.
  llvm::Value* EmitExpr(const ir::Expr& e);
  // Forgets the values of all nodes. To be called between statements, because a value need not dominate the next one.
  void ForgetValues() { emitted_.clear(); }
  // Runs `then` only where the condition holds; then its value, else zero of `type`. Null type: no value, returns null.
  llvm::Value* EmitGuarded(llvm::Value* condition, llvm::Type* type, const std::function<llvm::Value*()>& then);
  // The address of the buffer's element `index`. may_be_outside: a mask may keep the access from an element that does
  // not exist.
  virtual llvm::Value* Address(const ir::Buffer& buffer, const ir::Expr& index, llvm::Type* element,
                               bool may_be_outside = false);
  // Tells LLVM which buffer an access touches, and that it touches no other.
  void Annotate(llvm::Instruction* access, const ir::BufferNode* buffer);
  llvm::Type* MemoryTypeOf(ir::DType dtype) { return codegen::MemoryTypeOf(builder_, dtype); }

  llvm::IRBuilder<>& builder() { return builder_; }
  const ir::Func& func() const { return func_; }
  llvm::Module& module() { return *module_; }
  llvm::BasicBlock* MakeBlock(const std::string& name);  // in the function being emitted, without instructions
  Variables& variables() { return variables_; }
  ir::Ranges& ranges() { return ranges_; }
  Places& places() { return places_; }

 protected:
  // Both must outlive the emitter.
  ExprEmitter(llvm::Module* module, const ir::Func& func, const EmitOptions& options);

  // What machines differ in.

  // Index arithmetic in a cheaper form; null: as any other integer arithmetic.
  // What a cast to f32, less a constant, is by a cheaper way than in general; null if there is none.
  virtual llvm::Value* EmitConversion(const ir::Cast& /*cast*/, double /*less*/) { return nullptr; }
  virtual llvm::Value* EmitIndexBinary(const ir::Expr& /*e*/, const ir::Binary& /*binary*/) { return nullptr; }
  // C's fmod. The default needs no C library.
  virtual llvm::Value* EmitFloatMod(llvm::Value* a, llvm::Value* b) { return EmitWideFmod(builder_, a, b); }
  // A sine, cosine or tangent in f32. `value` is its value, which is wrong for angles from kAngleMax on. Returns a
  // value that is right for all angles. The default returns `value`.
  virtual llvm::Value* EmitLargeAngles(const ir::Call& /*call*/, const Values& /*args*/, llvm::Value* value) {
    return value;
  }
  // A function of f64. The default needs no C library.
  virtual llvm::Value* EmitFloat64Call(const ir::Call& call, const Values& args) {
    return EmitWideFunction(builder_, call.function, args);
  }
  // What is known of the alignment of the buffer's element `first`. The default: that of an element.
  virtual llvm::Align AlignOf(const ir::BufferNode& buffer, const ir::Expr& first) const;
  // Whether one instruction accesses just those elements whose mask is set. If not, a mask that is the same for all
  // elements becomes a branch around the access. index: the index of the access.
  virtual bool HasMaskedAccess(ir::Type /*type*/, const ir::Expr& /*index*/) { return false; }
  // Emits a vector access through `access`, which gets the value of the mask, or null to access all elements. mask: may
  // be undefined. type: the element type in memory, and the width.
  virtual llvm::Value* EmitMasked(const ir::Expr& mask, ir::Type type,
                                  const std::function<llvm::Value*(llvm::Value*)>& access);
  // The value of a load of more than one element. element, vector: the types of one and of all of them in memory.
  virtual llvm::Value* EmitVectorLoad(const ir::Load& load, llvm::Type* element, llvm::FixedVectorType* vector);
  // A load of consecutive elements from `address` on. mask: the value of load.mask, or null if there is none. Elements
  // whose mask is not set become 0.
  virtual llvm::Value* EmitContiguousLoad(const ir::Load& load, llvm::Value* address, llvm::FixedVectorType* vector,
                                          llvm::Value* mask);
  // A load of elements at a constant distance of `stride` > 1, without a mask. Null: they are gathered one by one.
  virtual llvm::Value* EmitStridedLoad(const ir::Load& /*load*/, int64_t /*stride*/,
                                       llvm::FixedVectorType* /*vector*/) {
    return nullptr;
  }

  llvm::Type* TypeOf(ir::Type type) { return codegen::TypeOf(builder_, type); }
  // The condition of a branch around an access with that mask, where all elements agree on it; else undefined.
  ir::Expr BranchCondition(const ir::Expr& mask, ir::Type type, const ir::Expr& index);
  // Runs one of the two, and returns its value. If values are null, so is the result.
  llvm::Value* EmitIfElse(llvm::Value* condition, const std::function<llvm::Value*()>& then,
                          const std::function<llvm::Value*()>& otherwise);

  llvm::Module* const module_;
  llvm::LLVMContext& context_;
  const ir::Func& func_;
  llvm::IRBuilder<> builder_;
  llvm::Function* function_ = nullptr;  // being emitted; null before Run
  Places places_;                       // of the buffers that are visible at the insertion point
  Variables variables_;                 // of the names that are visible there
  ir::Ranges ranges_;                   // what is known of these names
  llvm::MDNode* alias_domain_;          // of the func's buffers
  std::vector<llvm::MDNode*> scopes_;   // alias scopes of places_

 private:
  llvm::Value* EmitNode(const ir::Expr& e);
  llvm::Value* EmitBinary(const ir::Expr& e, const ir::Binary& binary);
  llvm::Value* EmitIntArithmetic(const ir::Binary& binary, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitMinMax(const ir::Binary& binary, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitSelect(const ir::Select& select);
  llvm::Value* EmitLoad(const ir::Load& load);
  llvm::Value* EmitCall(const ir::Call& call);
  llvm::Value* EmitFloat32Call(const ir::Call& call, const Values& args);
  // Null if the cast is not that of a power.
  llvm::Value* EmitRoundedPower(const ir::Cast& cast);
  // Null if the cast is not that of a quantization: to a short integer, of min(max(round(x) + c, lowest), highest).
  llvm::Value* EmitQuantization(const ir::Cast& cast);
  llvm::Value* EmitWideCall(const ir::Call& call, const Values& args);

  const Scaling scaling_;
  // The value of each node met since ForgetValues.
  struct Emitted {
    ir::Expr e;  // keeps the node alive, so that no other gets its address
    llvm::Value* value;
  };
  std::unordered_map<const ir::ExprNode*, Emitted> emitted_;
};

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_EXPR_EMITTER_H_
