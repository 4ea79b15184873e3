// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/split_launches.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"

namespace hone::passes {
namespace {

using Replacements = std::map<const ir::BufferNode*, ir::Buffer>;

ir::Expr ReplaceBuffers(const ir::Expr& e, const Replacements& map) {
  const ir::Expr mapped = ir::MapChildren(e, [&](const ir::Expr& child) { return ReplaceBuffers(child, map); });
  const ir::Load* load = mapped.As<ir::Load>();
  const auto found = load == nullptr ? map.end() : map.find(load->buffer.get());
  return found == map.end() ? mapped : ir::MakeLoad(found->second, load->indices, load->mask);
}

ir::Stmt ReplaceBuffers(const ir::Stmt& s, const Replacements& map) {
  const ir::Stmt mapped = ir::MapChildren(
      s, [&](const ir::Stmt& child) { return ReplaceBuffers(child, map); },
      [&](const ir::Expr& e) { return ReplaceBuffers(e, map); });
  const ir::Store* store = mapped.As<ir::Store>();
  const auto found = store == nullptr ? map.end() : map.find(store->buffer.get());
  return found == map.end() ? mapped : ir::MakeStore(found->second, store->indices, store->value, store->mask);
}

std::vector<ir::Buffer> BuffersUsedIn(const ir::Stmt& body, const std::vector<ir::Buffer>& buffers) {
  std::set<const ir::BufferNode*> used;
  const std::function<void(const ir::Stmt&)> visit = [&](const ir::Stmt& s) {
    if (const ir::Store* store = s.As<ir::Store>()) used.insert(store->buffer.get());
    ir::ForEachChild(s, visit, [](const ir::Expr&) {});
  };
  visit(body);
  ir::ForEachExpr(body, [&](const ir::Expr& e) {
    if (const ir::Load* load = e.As<ir::Load>()) used.insert(load->buffer.get());
  });
  std::vector<ir::Buffer> result;
  for (const ir::Buffer& buffer : buffers) {
    if (used.contains(buffer.get())) result.push_back(buffer);
  }
  return result;
}

// The parts of a func: its top-level nests, each one launch, and what is around them.
struct Parts {
  ir::Ranges sizes;                  // the variables that are bound to the open sizes
  std::vector<const ir::Let*> lets;  // these variables, the outermost first
  std::vector<ir::Buffer> workspace;
  std::vector<ir::Stmt> nests;
};

void CollectParts(const ir::Stmt& s, Parts* parts) {
  const ir::Let* let = s.As<ir::Let>();
  if (const ir::Alloc* alloc = s.As<ir::Alloc>(); alloc != nullptr && alloc->buffer->scope == ir::Scope::kWorkspace) {
    parts->workspace.push_back(alloc->buffer);
    CollectParts(alloc->body, parts);
  } else if (const ir::Block* block = s.As<ir::Block>(); block != nullptr && block->name.empty()) {
    for (const ir::Stmt& child : block->stmts) CollectParts(child, parts);
  } else if (let != nullptr && parts->sizes.contains(let->var)) {
    parts->lets.push_back(let);
    CollectParts(let->body, parts);
  } else {
    parts->nests.push_back(s);
  }
}

bool UsesVarIn(const ir::Stmt& s, const std::string& var) {
  bool uses = false;
  ir::ForEachExpr(s, [&](const ir::Expr& e) {
    const ir::Var* v = e.As<ir::Var>();
    uses |= v != nullptr && v->name == var;
  });
  return uses;
}

// The nest inside the Lets that it uses.
ir::Stmt WithSizes(ir::Stmt nest, const std::vector<const ir::Let*>& lets) {
  for (auto let = lets.rbegin(); let != lets.rend(); ++let) {
    if (UsesVarIn(nest, (*let)->var)) nest = ir::MakeLet((*let)->var, (*let)->value, std::move(nest));
  }
  return nest;
}

}  // namespace

Launches SplitLaunches(const ir::Func& func) {
  Launches launches;
  Parts parts{.sizes = ir::SizeRanges(func)};
  CollectParts(func.body, &parts);
  Replacements as_params;
  std::vector<ir::Buffer> buffers = func.params;
  for (const ir::Buffer& buffer : parts.workspace) {
    const ir::Buffer param = ir::MakeBuffer(buffer->name, buffer->dtype, buffer->shape);
    as_params[buffer.get()] = param;
    launches.workspace.push_back(param);
    buffers.push_back(param);
  }
  for (const ir::Stmt& nest : parts.nests) {
    const ir::Stmt body = WithSizes(ReplaceBuffers(nest, as_params), parts.lets);
    launches.funcs.push_back(
        {fmt::format("{}_{}", func.name, launches.funcs.size()), BuffersUsedIn(body, buffers), body});
  }
  return launches;
}

}  // namespace hone::passes
