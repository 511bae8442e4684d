#include "planner/collectives/time_alone.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "base/index.hpp"
#include "plan/lowering/lower_collective.hpp"
#include "planner/collectives/collective_times.hpp"

namespace longhaul::planner {
namespace {

constexpr Duration kNever = Duration::min();

/// When messages have left and arrived at the earliest, of those that follow from the first ones of
/// some members.
class Chains {
public:
  explicit Chains(const Plan& plan)
      : plan_{plan}, stepped_{plan.stepped.front()}, left_(size()), came_(size()) {}

  /// From the start of one member; -1: of all.
  void follow(std::int32_t source) {
    for (std::size_t m = 0; m < size(); ++m) {
      const plan::StepMessage& message = stepped_.steps->messages[m];
      Duration begin = source < 0 || message.from == source ? Duration::zero() : kNever;
      for (const std::int32_t before : {message.left_before, message.left_of_piece})
        if (before >= 0) begin = std::max(begin, left_[at(before)]);
      for (const std::uint32_t before : stepped_.steps->after_of(message))
        begin = std::max(begin, came_[before]);
      left_[m] = came_[m] = begin;
      if (begin == kNever) continue;
      left_[m] += plan_.op(stepped_.sends[m]).duration;
      came_[m] = left_[m] + plan_.op(stepped_.receives[m]).duration;
    }
  }
  [[nodiscard]] Duration last() const {
    return std::max(Duration::zero(), std::ranges::max(came_));
  }
  [[nodiscard]] Duration last_at(std::int32_t member) const {
    Duration last{};
    for (std::size_t m = 0; m < size(); ++m) {
      const plan::StepMessage& message = stepped_.steps->messages[m];
      if (message.to == member) last = std::max(last, came_[m]);
      if (message.from == member) last = std::max(last, left_[m]);
    }
    return last;
  }
  /// By member: the last message to it.
  [[nodiscard]] std::vector<Duration> arrivals() const {
    std::vector<Duration> all(stepped_.collective.members.size());
    for (std::size_t m = 0; m < size(); ++m) {
      Duration& last = all[at(stepped_.steps->messages[m].to)];
      last = std::max(last, came_[m]);
    }
    return all;
  }
  [[nodiscard]] std::size_t size() const { return stepped_.sends.size(); }

private:
  const Plan& plan_;
  const SteppedCollective& stepped_;
  std::vector<Duration> left_, came_;
};

}  // namespace

plan::TimeAlone time_alone(const Scenario& scenario) {
  using Key =
      std::tuple<CollectiveKind, std::int64_t, std::vector<Rank>, plan::CollectiveAlgorithm,
                 std::vector<int>, std::vector<int>, std::vector<plan::CollectiveAlgorithm>, int>;
  struct Known {
    std::mutex mutex;
    std::map<Key, Duration> times;
  };
  return [&scenario, known = std::make_shared<Known>()](const plan::Collective& collective) {
    const std::scoped_lock lock{known->mutex};
    const auto [found, is_new] = known->times.try_emplace(
        {collective.kind, collective.size.count(), collective.members, collective.algorithm,
         collective.mesh.sizes, collective.mesh.order, collective.mesh.algorithms,
         collective.pieces},
        Duration{});
    if (is_new) {
      const Result<CollectiveTime> played = play_collective(collective, scenario);
      if (played) found->second = played->duration;
    }
    return found->second;
  };
}

LeastTimes least_times(const plan::Collective& collective, const Scenario& scenario) {
  const std::size_t members = collective.members.size();
  LeastTimes least{std::vector<Duration>(members), std::vector<Duration>(members),
                   std::vector<Duration>(members)};
  const Result<Plan> plan = plan::lower_collective(collective, scenario);
  if (!plan) return least;
  Chains chains{*plan};
  chains.follow(-1);
  least.arrival = chains.arrivals();
  const std::size_t sources =
      std::min(members, kMostChains / std::max<std::size_t>(1, chains.size()));
  for (std::size_t member = 0; member < sources; ++member) {
    chains.follow(static_cast<std::int32_t>(member));
    least.to_all_ends[member] = chains.last();
    least.to_own_end[member] = chains.last_at(static_cast<std::int32_t>(member));
  }
  return least;
}

bool collectives_take_no_less(const Schedule& schedule, const Scenario& scenario) {
  if (plan::is_estimate(scenario.parallel.gradient_sync)) return true;
  const plan::TimeAlone alone = time_alone(scenario);
  const std::vector<plan::StageCollective> all = plan::find_collectives(schedule, scenario);
  if (schedule.copies > 1 && !all.empty()) return false;  // members do not begin together
  return std::ranges::all_of(all, [&](const plan::StageCollective& each) {
    const Duration whole = alone(each.collective);
    const LeastTimes least = least_times(each.collective, scenario);
    const auto all_take_it = [&](const std::vector<Duration>& times) {
      return std::ranges::all_of(times, [&](Duration time) { return time >= whole; });
    };
    if (is_before_forward(each.collective.kind)) return all_take_it(least.arrival);
    return all_take_it(least.to_all_ends) && all_take_it(least.to_own_end);
  });
}

}  // namespace longhaul::planner
