#include "engine/op_marks.hpp"

#include <fmt/format.h>

namespace longhaul {
namespace {

/// "F(3,5)": of chunk 3, microbatch 5; what a send or receive carries, and between whom.
std::string title_of(const Op& op) {
  const Block block{op.block_kind, op.part, op.parts, op.chunk, op.microbatch};
  std::string name = fmt::format("{}({},{})", to_string(block.kind), block.chunk, block.microbatch);
  if (block.parts > 1) name += fmt::format(".{}/{}", block.part, block.parts);
  switch (op.kind) {
    case OpKind::compute: return name;
    case OpKind::send: return fmt::format("send {} to {}", name, index(op.peer));
    case OpKind::recv: return fmt::format("receive {} from {}", name, index(op.peer));
    case OpKind::collective: return fmt::format("collective of chunk {}", op.chunk);
  }
  return name;
}

}  // namespace

void OpMarks::started(OpId id) { open_[id] = begin_mark(title_of(plan_.op(id))); }

void OpMarks::ended(OpId id) {
  const auto mark = open_.find(id);
  if (mark == open_.end()) return;
  end_mark(mark->second);
  open_.erase(mark);
}

}  // namespace longhaul
