#include <algorithm>
#include <optional>
#include <utility>

#include "collective/overlap/rewrites.hpp"

namespace longhaul::collective {
namespace {

/// Of one stage.
class Serialized {
public:
  explicit Serialized(StageWork& work) : work_{work} {
    const auto positions = work.positions();
    ready_at_.resize(work.order.size());
    wanted_at_.resize(work.order.size());
    for (const CommunicationId id : work.issue) {
      const Communication& each = work.communications[id];
      if (each.needs.empty() || each.input >= 0) {
        wanted_at_[place_of_first(each, positions)].push_back(id);
        continue;
      }
      std::uint32_t last = 0;
      for (const OperationId operation : each.needs) last = std::max(last, positions[operation]);
      ready_at_[last].push_back(id);
    }
  }

  void run() {
    work_.issue.clear();
    for (std::size_t place = 0; place < work_.order.size(); ++place) {
      for (const CommunicationId id : wanted_at_[place]) put(id);
      const OperationId operation = work_.order[place];
      if (latest_ && !is_cut_with(*latest_, operation)) {
        work_.communications[*latest_].before.push_back(operation);
        latest_.reset();
      }
      operation_ = operation;
      for (const CommunicationId id : ready_at_[place]) put(id);
    }
  }

private:
  /// Of pieces the place of the first piece of their operator.
  [[nodiscard]] std::uint32_t place_of_first(
      const Communication& each, const IndexedVector<OperationId, std::uint32_t>& positions) const {
    std::uint32_t first = static_cast<std::uint32_t>(work_.order.size()) - 1;
    for (const OperationId operation : each.needed_by)
      first = std::min(first, positions[operation]);
    while (each.cut_with >= 0 && first > 0 && is_at(work_.order[first - 1], each.cut_with)) --first;
    return first;
  }
  [[nodiscard]] bool is_at(OperationId operation, std::int32_t position) const {
    return std::cmp_equal(work_.operations[operation].position, position);
  }
  [[nodiscard]] bool is_cut_with(CommunicationId id, OperationId operation) const {
    const std::int32_t position = work_.communications[id].cut_with;
    return position >= 0 && is_at(operation, position);
  }

  /// After the operation or collective so far.
  void put(CommunicationId id) {
    Communication& each = work_.communications[id];
    each.queue = 0;
    each.at_start_of = kNone<OperationId>;
    each.before.clear();
    each.after.clear();
    if (operation_) each.after.push_back(*operation_);
    work_.issue.push_back(id);
    latest_ = id;
  }

  StageWork& work_;
  std::vector<std::vector<CommunicationId>> ready_at_, wanted_at_;  ///< by place in the order
  std::optional<OperationId> operation_;
  std::optional<CommunicationId> latest_;  ///< since that operation
};

}  // namespace

IterationPlan serialized(IterationPlan plan) {
  for (StageWork& work : plan.stages) Serialized{work}.run();
  return plan;
}

}  // namespace longhaul::collective
