#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "training/replay/replay_choice.hpp"

namespace longhaul::training {

/// Called with the set that a replica makes of its gradient, before it is summed; may change it.
using SentSet = std::function<void(ReplicaId, ReplaySet&)>;

/// What the replicas make together of one part's gradients, iteration by iteration: sets, sums, and
/// what each of them keeps for later.
class ReplayExchange {
public:
  /// Of part `part` of the model, of `count` numbers. `site_of_replica` has one for each replica,
  /// from 0 on. What a site leaves in an iteration its leader adds `staleness` iterations after the
  /// next.
  ReplayExchange(const GradientCompression& compress, std::span<const int> site_of_replica,
                 int part, std::size_t count, int staleness = 0);

  /// The share of the numbers that is kept from now on.
  void set_keep(double keep);
  /// The sum that all replicas step with. `gradients` [replica][count] are finite.
  [[nodiscard]] ReplaySet run(std::span<const std::span<const float>> gradients,
                              const SentSet& sent = {});
  /// After the last iteration: what sites left goes to their leaders.
  void finish();
  /// Of a replica; zeros where nothing is fed back.
  [[nodiscard]] std::span<const float> residual(ReplicaId replica) const;

private:
  struct Site {
    std::vector<std::size_t> members;  ///< replicas, ascending
    std::size_t leader;                ///< one of them
    ReplayChooser chooser;
    std::deque<std::vector<float>> left;  ///< of the last iterations, oldest first
  };
  [[nodiscard]] ReplaySet own_set(std::size_t replica, std::span<const float> gradient);
  void feed_back(Site& site);
  [[nodiscard]] ReplaySet set_of_site(Site& site, std::span<const ReplaySet> sets);

  bool feeds_back_;
  KeptShare share_;
  std::size_t staleness_;
  std::vector<ReplayChooser> choosers_;        ///< of each replica
  std::vector<std::vector<float>> residuals_;  ///< of each replica
  std::map<int, Site> sites_;                  ///< empty where all sets go to all replicas
};

}  // namespace longhaul::training
