#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "scenario/training.hpp"

namespace longhaul::plan {

/// A set of numbers on its way from one member to another. Members go by their place in the group.
struct SetMessage {
  std::int32_t from = 0, to = 0;
  /// Messages of one hop between two members are on lanes of their own: hops run apart.
  std::int32_t hop = 0;
  /// The message to `from` that brought the set; -1: it is of its own site, if `of_site`, or its
  /// own.
  std::int32_t brought_by = -1;
  bool of_site = false;
  Bytes size;
};

/// Member `at` sums the sets of its site, its own and those of `inputs`, and chooses anew.
struct SiteChoice {
  std::int32_t at = 0;
  std::vector<std::int32_t> inputs;  ///< messages
};

/// How the members of a group exchange the sets of one part.
struct SetExchangeSteps {
  std::vector<SetMessage> messages;  ///< each after the one that brought its set
  std::vector<SiteChoice> choices;   ///< one at most of each member
};

/// Sizes of a member's set and of a site's.
struct SetSizes {
  Bytes of_member, of_site;
};

/// `sites`: the datacenter of each member. Of a part, member `part` mod their number of each site
/// chooses for it, so that all share the work.
[[nodiscard]] SetExchangeSteps exchange_of(SetExchange exchange,
                                           const std::vector<DatacenterId>& sites, int part,
                                           const SetSizes& sizes);

/// How many sites there are.
[[nodiscard]] int count_sites(const std::vector<DatacenterId>& sites);

}  // namespace longhaul::plan
