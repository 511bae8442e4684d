#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "scenario/training.hpp"

namespace longhaul::plan {

/// Messages inside a node that gathers gradients: a member's, to the one that leads the node, and
/// from that one the weights after its step. All others bring sets.
enum class NodeLeg : std::uint8_t { none, gradient, weights };

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
  std::int32_t round = 0;  ///< of several exchanges that follow each other
  NodeLeg leg = NodeLeg::none;
};

/// Member `at` sums the sets of its site, its own and those of `inputs`, and chooses anew.
struct SiteChoice {
  std::int32_t at = 0;
  std::vector<std::int32_t> inputs;  ///< messages
  std::int32_t round = 0;
};

/// How the members of a group exchange the sets of one part.
struct SetExchangeSteps {
  std::vector<SetMessage> messages;  ///< each after the one that brought its set
  std::vector<SiteChoice> choices;   ///< one at most of each member and round
  /// By member: the one of its node that sums, exchanges and steps for it, itself or a lower one.
  /// Empty: each does so for itself.
  std::vector<std::int32_t> leaders;

  [[nodiscard]] bool leads(std::int32_t member) const {
    return leaders.empty() || leaders[static_cast<std::size_t>(member)] == member;
  }
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

/// The same as often as there are sizes, one round after the other: what a member sends in a round
/// it makes of all that it got in the one before. Hops go on from round to round.
[[nodiscard]] SetExchangeSteps exchanges_of(SetExchange exchange,
                                            const std::vector<DatacenterId>& sites, int part,
                                            std::span<const SetSizes> sizes);

/// The same between those who lead nodes alone, which `leaders` says as SetExchangeSteps does; the
/// others send them gradients and get weights, `dense` bytes each.
[[nodiscard]] SetExchangeSteps exchanges_of_nodes(SetExchange exchange,
                                                  const std::vector<DatacenterId>& sites,
                                                  const std::vector<std::int32_t>& leaders,
                                                  int part, std::span<const SetSizes> sizes,
                                                  Bytes dense);

/// How many of so many members exchange sets: all, or those who lead nodes.
[[nodiscard]] int count_leaders(const std::vector<std::int32_t>& leaders, std::size_t members);

/// How many sites there are.
[[nodiscard]] int count_sites(const std::vector<DatacenterId>& sites);

/// What is exchanged of the parts of a model in an iteration of M microbatches, where that is not
/// one set of [train.compress] of each after its last gradient.
struct PartExchanges {
  /// Bytes that a member sends of a part, by its number in the model and then by round; of each
  /// part as many rounds. Empty: one, as large as [train] says.
  std::vector<std::vector<Bytes>> sizes;
  /// Part k is of fragment f = k mod `fragments`, which is exchanged after microbatch
  /// (f + 1) M / `fragments`. 1: all parts are after the last.
  int fragments = 1;
  /// Microbatches that begin between a fragment's exchange and the F that waits for its update.
  int overlap = 0;

  [[nodiscard]] int rounds() const {
    return sizes.empty() ? 1 : static_cast<int>(sizes.front().size());
  }
};

}  // namespace longhaul::plan
