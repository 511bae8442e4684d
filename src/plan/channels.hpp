#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::plan {

/// Which of its processors and network interfaces a rank uses for what it exchanges with another,
/// where a format knows ranks with several. Each direction of each pair of ranks, and of each ring
/// of collectives, is a channel of its own; both of its ends give it the same number, which no
/// other channel of either rank has. Number 0 is left to computation.
class Channels {
public:
  /// Throws Error where a rank has more channels than 8 bits count.
  explicit Channels(const Plan& plan);

  [[nodiscard]] int of_message(Rank from, Rank to) const { return number_of(from, to, false); }
  /// The number of the hop of a ring from a member to the next.
  [[nodiscard]] int of_ring(Rank from, Rank to) const { return number_of(from, to, true); }

private:
  using Key = std::tuple<Rank, Rank, bool>;
  void add(Rank from, Rank to, bool ring);
  [[nodiscard]] int number_of(Rank from, Rank to, bool ring) const {
    return number_.at({from, to, ring});
  }

  const Plan& plan_;
  std::map<Key, int> number_;
  std::vector<std::vector<bool>> taken_;  ///< index: rank, number
};

}  // namespace longhaul::plan
