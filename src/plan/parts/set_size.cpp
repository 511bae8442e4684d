#include "plan/parts/set_size.hpp"

#include <algorithm>
#include <cmath>

#include "base/kept_share.hpp"

namespace longhaul::plan {
namespace {

/// Numbers that are kept or left out together.
int block_of(const GradientCompression& compress) {
  return compress.method == CompressMethod::topk ? 1 : compress.block;
}

std::int64_t bytes_of_value(const GradientCompression& compress) {
  switch (compress.method) {
    case CompressMethod::none: return 4;
    case CompressMethod::fp16: return 2;
    case CompressMethod::int8: return 1;
    default: break;
  }
  switch (compress.values) {
    case SetValues::f32: return 4;
    case SetValues::bf16: return 2;
    case SetValues::int8: return 1;
  }
  return 4;
}

/// Bits of the places of `kept` of `all` blocks, at least.
double bits_of_gaps(std::int64_t kept, std::int64_t all) {
  if (kept >= all) return 0;
  const double share = static_cast<double>(kept) / static_cast<double>(all);
  return static_cast<double>(all) *
         -(share * std::log2(share) + (1 - share) * std::log2(1 - share));
}

}  // namespace

std::int64_t numbers_kept(const GradientCompression& compress, std::int64_t numbers, int sets) {
  if (!is_sparse(compress.method)) return numbers;
  const int block = block_of(compress);
  const double share = compress.keep / (compress.share == KeptShare::split ? sets : 1);
  return std::min(numbers, blocks_to_keep(numbers, share, block) * block);
}

Bytes set_size(const GradientCompression& compress, std::int64_t numbers, int sets) {
  const std::int64_t kept = numbers_kept(compress, numbers, sets);
  const std::int64_t values = kept * bytes_of_value(compress);
  if (!is_sparse(compress.method)) return Bytes{values};
  switch (compress.index) {
    case SetIndex::coo32: return Bytes{values + 4 * kept};
    case SetIndex::coo16: return Bytes{values + 2 * kept};
    case SetIndex::gaps: break;
  }
  const int block = block_of(compress);
  const double bits = bits_of_gaps(blocks_in(kept, block), blocks_in(numbers, block));
  return Bytes{values + static_cast<std::int64_t>(std::ceil(bits / 8))};
}

}  // namespace longhaul::plan
