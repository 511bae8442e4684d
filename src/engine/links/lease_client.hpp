#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/links/lease_words.hpp"

namespace longhaul::engine {

/// This rank's sends over links whose leases other hosts keep.
class LeaseClient {
public:
  /// `words` outlives this.
  explicit LeaseClient(LeaseWords& words) : words_{words} {}

  void ask(OpId send, Rank home, TimePoint ready, TimePoint at);
  void let_go(OpId send, Rank home, TimePoint due, const ShadowTime& seen, TimePoint at);
  /// The home has granted it.
  void came(const LeaseWords::Came& came, TimePoint at);

  struct Lease {
    LinkTable::Grant grant;
    Duration
        on_the_way{};  ///< of its words: from the request to the grant, without the home's part
  };
  [[nodiscard]] std::optional<Lease> take(OpId send);

private:
  LeaseWords& words_;
  std::unordered_map<OpId, TimePoint> asked_;
  std::unordered_map<OpId, Lease> granted_;
};

}  // namespace longhaul::engine
