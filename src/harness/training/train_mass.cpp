#include "harness/training/train_mass.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"

namespace longhaul::harness {
namespace {

/// Sums of all numbers of a run are compared up to here: some 30 bytes a number and rank on one
/// rank.
constexpr std::size_t kMostAccounted = 10'000'000;

/// Of all numbers of one rank.
struct RankSums {
  std::vector<double> gradients, waits, stepped;
  std::vector<std::int8_t> steps;
  bool forgets = false;  ///< something, by design or to save memory
};

RankSums accounts_of(const training::ReplicaWork* work) {
  RankSums sums;
  for (std::size_t p = 0; work != nullptr && p < work->ranges().size(); ++p) {
    const auto [first, count] = work->ranges()[p];
    for (auto* const all : {&sums.gradients, &sums.waits, &sums.stepped})
      all->resize(std::max(all->size(), first + count));
    sums.steps.resize(sums.gradients.size());
    const auto gradients = work->gradients_seen(p), stepped = work->sums_seen(p);
    const auto waits = work->residual(p);
    sums.forgets = sums.forgets || gradients.empty();
    const bool leads = work->part_ops().parts()[p].leads;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = first + i;
      sums.gradients[at] = gradients.empty() ? 0 : gradients[i];
      sums.waits[at] = waits.empty() ? 0 : static_cast<double>(waits[i]);
      sums.stepped[at] = stepped.empty() ? 0 : stepped[i];
      sums.steps[at] = leads ? 1 : 0;
    }
  }
  return sums;
}

void add_to(std::vector<double>& all, std::span<const double> more) {
  all.resize(std::max(all.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) all[i] += more[i];
}

}  // namespace

void TrainMass::add(std::span<const double> gradients, std::span<const double> waits) {
  add_to(gradients_, gradients);
  add_to(waits_, waits);
}

void TrainMass::compare(std::span<const double> sums, std::span<const std::int8_t> steps) {
  double lost = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double missing = steps[i] == 0 ? 0 : gradients_[i] - waits_[i] - sums[i];
    lost += missing * missing;
  }
  if (std::isnan(lost) || lost > most_) most_ = lost;
}

double TrainMass::lost_relative() const {
  if (most_ == 0) return 0;
  double size = 0;
  for (const double gradient : gradients_) size += gradient * gradient;
  return size > 0 ? std::sqrt(most_ / size) : 1;
}

std::optional<double> lost_share(const engine::Ranks& ranks, const TrainRank& rank,
                                 const WholeModel& whole) {
  const RankSums mine = accounts_of(rank.work());
  const bool accounts = !mine.forgets && mine.gradients.size() <= kMostAccounted;
  if (ranks.world().minimum(accounts ? 1 : 0) == 0) return std::nullopt;
  TrainMass mass;
  {
    const auto gradients = whole.join_all<double>(mine.gradients);
    const auto waits = whole.join_all<double>(mine.waits);
    for (std::size_t r = 0; r < gradients.size(); ++r) mass.add(gradients[r], waits[r]);
  }
  const auto stepped = whole.join_all<double>(mine.stepped);
  const auto steps = whole.join_all<std::int8_t>(mine.steps);
  for (std::size_t r = 0; r < stepped.size(); ++r) mass.compare(stepped[r], steps[r]);
  return mass.lost_relative();
}

}  // namespace longhaul::harness
