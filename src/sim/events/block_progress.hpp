#pragma once

#include <cstdint>
#include <vector>

#include "plan/extras/slow_rates.hpp"
#include "plan/plan.hpp"

namespace longhaul::sim {

/// Blocks that slow while a message holds their rank (plan::Overlap), exactly (plan::SlowRates).
class BlockProgress {
public:
  explicit BlockProgress(const Plan& plan);

  struct Running {
    std::uint32_t instance = 0;
    Duration due{};  ///< unless a message begins or ends before
  };
  /// Gives back when it is due.
  Duration begin(Rank rank, std::uint32_t instance, Duration work, Duration now);
  [[nodiscard]] bool is_due(Rank rank, std::uint32_t instance, Duration now) const;
  /// Is it due at this instant? It is forgotten then.
  bool end(Rank rank, std::uint32_t instance, Duration now);
  /// A message of that level begins (+1) or ends (-1) to hold the rank. Gives back the blocks of
  /// the rank that are due at another time than before.
  [[nodiscard]] std::vector<Running> change(Rank rank, NetworkLevel level, int by, Duration now);
  [[nodiscard]] bool slows(NetworkLevel level) const {
    return overlap_.at(level) > plan::Overlap::kNone;
  }

private:
  using Parts = plan::SlowRates::Parts;
  struct Block {
    Running running;
    Parts left = 0;
    Duration since{};
  };
  struct RankState {
    plan::SlowRates::Holds holds{};
    std::vector<Block> blocks;
  };
  static void set_due(Block& block, Parts rate);

  plan::Overlap overlap_;
  plan::SlowRates rates_;
  std::vector<RankState> ranks_;
};

}  // namespace longhaul::sim
