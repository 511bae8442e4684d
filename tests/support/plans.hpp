#pragma once

#include "base/error.hpp"
#include "plan/plan.hpp"

namespace longhaul::testing {

/// The op of `rank` with this kind, block kind, microbatch and (unless -1) chunk.
inline OpId find(const Plan& plan, int rank, OpKind kind, BlockKind block, int microbatch,
                 int chunk = -1) {
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const Op& op = plan.op(id);
    if (plan.rank_of(id) == Rank{rank} && op.kind == kind && op.block_kind == block &&
        op.microbatch == microbatch && (chunk < 0 || op.chunk == chunk))
      return id;
  }
  fail("no such op on rank {} (microbatch {})", rank, microbatch);
}

}  // namespace longhaul::testing
