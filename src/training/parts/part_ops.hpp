#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "plan/lowering/part_lowering.hpp"
#include "plan/parts/set_exchange.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::training {

/// The work of a host task on its part.
enum class PartTask : std::uint8_t {
  copy_out,
  gather,
  compress,
  choose,
  answer,
  merge,
  optimize,
  copy_in
};

/// Messages that bring the sets that are summed in a round of the exchange, in the order of the
/// sum; -1: the rank's own set, or of an exchange through sites its site's.
struct PlannedRound {
  std::vector<int> sum_of, choice_of;
};

/// A part of a rank's weights in the plan.
struct PlannedPart {
  plan::TrainedPart trained;
  plan::SetExchangeSteps steps;  ///< sizes are not filled in
  OpId first_forward{}, last_gradient{};
  bool has_compress = false, has_merge = false, has_copy_in = false;
  int sends = 0;  ///< messages of an iteration that this rank sends
  std::vector<PlannedRound> rounds;
  /// Of its node: does this rank compress, exchange and step? Otherwise it sends its gradient to
  /// the one that does, and gets weights.
  bool leads = true;
  /// Messages of the gradients that it adds to its own, in their order, where it leads others.
  std::vector<int> gradients;

  /// Do several replicas of a node have one sum?
  [[nodiscard]] bool is_gathered() const { return !leads || !gradients.empty(); }
};

/// What the ops of a rank do with its parts: the other side of PartLowering.
class PartOps {
public:
  /// The plan was lowered from the schedule, with these exchanges.
  PartOps(const Plan& plan, const Schedule& schedule, const Scenario& scenario, Rank self,
          const plan::PartExchanges& exchanges = {});

  struct TaskOf {
    PartTask task{};
    std::size_t part = 0;
    int round = 0;  ///< of choose; of answer, the one whose sets it makes
  };
  struct MessageOf {
    std::size_t part = 0;
    int message = 0;
  };
  [[nodiscard]] const std::vector<PlannedPart>& parts() const { return parts_; }
  [[nodiscard]] const TaskOf* task_of(OpId op) const { return find(tasks_, op); }
  /// nullptr: it carries no set.
  [[nodiscard]] const MessageOf* message_of(OpId op) const { return find(messages_, op); }
  [[nodiscard]] OpId first_block() const { return first_block_; }
  [[nodiscard]] OpId last_block() const { return last_block_; }
  /// Ranks that hold copies of this one's weights, by replica.
  [[nodiscard]] const std::vector<Rank>& members() const { return members_; }
  [[nodiscard]] int sites() const { return sites_; }
  /// How many of the members make sets: all, or one of each node.
  [[nodiscard]] int sets() const { return plan::count_leaders(leaders_, members_.size()); }

private:
  template <typename Value>
  static const Value* find(const std::unordered_map<OpId, Value>& map, OpId op) {
    const auto found = map.find(op);
    return found == map.end() ? nullptr : &found->second;
  }
  void add_tasks(const Plan& plan, OpRange ops);
  void add_messages(const Plan& plan, OpRange ops);
  [[nodiscard]] PlannedRound order_sums(const PlannedPart& part, int round) const;
  void add_gradients(PlannedPart& part) const;

  std::vector<Rank> members_;
  std::vector<DatacenterId> site_of_;  ///< by member
  std::vector<std::int32_t> leaders_;  ///< plan::SetExchangeSteps::leaders
  int self_ = 0, sites_ = 1;           ///< this rank among the members
  std::vector<PlannedPart> parts_;
  std::unordered_map<OpId, TaskOf> tasks_;
  std::unordered_map<OpId, MessageOf> messages_;
  OpId first_block_{}, last_block_{};
};

}  // namespace longhaul::training
