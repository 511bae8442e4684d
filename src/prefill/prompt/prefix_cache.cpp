#include "prefill/prompt/prefix_cache.hpp"

#include <algorithm>

namespace longhaul::prefill {

std::int64_t PrefixCache::leading_tokens(const std::vector<std::int64_t>& hashes,
                                         std::int64_t tokens, Duration now) const {
  std::int64_t found = 0;
  for (const std::int64_t hash : hashes) {
    const auto place = places_.find(hash);
    if (place == places_.end() || place->second->ready > now) break;
    found += kBlockTokens;
  }
  return std::min(found, tokens - 1);
}

void PrefixCache::keep(const std::vector<std::int64_t>& hashes, std::int64_t tokens,
                       Duration ready) {
  const auto whole = static_cast<std::size_t>(tokens / kBlockTokens);
  // The last first, so that a prefix outlives what stands after it.
  for (std::size_t i = std::min(whole, hashes.size()); i-- > 0;) {
    const auto place = places_.find(hashes[i]);
    if (place != places_.end()) {
      blocks_.splice(blocks_.begin(), blocks_, place->second);
      blocks_.front().ready = std::min(blocks_.front().ready, ready);
    } else {
      blocks_.push_front({hashes[i], ready});
      places_[hashes[i]] = blocks_.begin();
    }
  }
  while (static_cast<std::int64_t>(blocks_.size()) > most_) {
    places_.erase(blocks_.back().hash);
    blocks_.pop_back();
  }
}

}  // namespace longhaul::prefill
