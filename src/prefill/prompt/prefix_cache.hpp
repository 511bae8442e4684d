#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "base/units.hpp"

namespace longhaul::prefill {

/// Keys and values of prompts' leading blocks that a datacenter keeps of one model, by hash: the
/// least recently used go first. A block is there from the end of the prefill that computed it on.
class PrefixCache {
public:
  /// Tokens of a block, as Mooncake's traces have them.
  static constexpr std::int64_t kBlockTokens = 512;

  /// Room for so many blocks.
  explicit PrefixCache(std::int64_t blocks) : most_{blocks} {}

  /// Leading tokens of a prompt with these hashes that are there at `now`: fewer than `tokens`, for
  /// the last token is always computed.
  [[nodiscard]] std::int64_t leading_tokens(const std::vector<std::int64_t>& hashes,
                                            std::int64_t tokens, Duration now) const;
  /// The whole blocks of a prompt of so many tokens are there from `ready` on.
  void keep(const std::vector<std::int64_t>& hashes, std::int64_t tokens, Duration ready);

private:
  struct Block {
    std::int64_t hash = 0;
    Duration ready{};
  };
  std::int64_t most_;
  std::list<Block> blocks_;  ///< the most recently used first
  std::unordered_map<std::int64_t, std::list<Block>::iterator> places_;
};

}  // namespace longhaul::prefill
