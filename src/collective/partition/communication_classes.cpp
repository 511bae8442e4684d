#include "collective/partition/communication_classes.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "collective/iteration/communications.hpp"
#include "collective/partition/workload_chain.hpp"

namespace longhaul::collective {
namespace {

/// Of one stage.
class Classifier {
public:
  Classifier(const IterationPlan& plan, DeviceId stage)
      : plan_{plan}, stage_{stage}, work_{plan.stages[stage]}, positions_{work_.positions()} {
    Duration sum{};
    for (const OperationId id : work_.order) {
      before_.push_back(sum);
      sum += work_.operations[id].duration;
    }
    before_.push_back(sum);
    for (const UnitUse& use : unit_uses(work_))
      starts_.push_back(positions_[use.operations.front()]);
    for (const Communication& each : work_.communications)
      if (!user_of(each))
        if (const auto maker = extreme(each.needs, Extreme::last)) sums_.push_back(*maker + 1);
    std::ranges::sort(sums_);
  }

  [[nodiscard]] CommunicationClass class_of(CommunicationId id) const {
    const Communication& own = work_.communications[id];
    CommunicationClass made;
    made.traffic = own.traffic;
    made.kind = own.kind;
    made.members = own.members;
    made.size = own.size;
    const std::optional<std::uint32_t> user = user_of(own);
    const std::optional<std::uint32_t> maker = extreme(own.needs, Extreme::last);
    if (const auto beside = partner_of(plan_, work_, own)) {
      const Operation& operation = work_.operations[*beside];
      if (const Operator* of = operator_of(plan_, operation)) made.beside = of->name;
      made.work = operation.work;
      made.computation = operation.duration;
    }
    made.independent = independent(own, user, maker);
    made.tier = tier_of(own, made.work);
    made.all = {{stage_, id, own.traffic}};
    return made;
  }

private:
  enum class Extreme : std::uint8_t { first, last };

  [[nodiscard]] static Tier tier_of(const Communication& own, BlockKind work) {
    if (own.traffic == Traffic::dp) return Tier::model;
    return work == BlockKind::F ? Tier::operation : Tier::layer;
  }

  [[nodiscard]] std::optional<std::uint32_t> extreme(const std::vector<OperationId>& operations,
                                                     Extreme wanted) const {
    std::optional<std::uint32_t> found;
    for (const OperationId id : operations) {
      const std::uint32_t place = positions_[id];
      if (!found || (wanted == Extreme::first ? place < *found : place > *found)) found = place;
    }
    return found;
  }

  /// Before the optimizer's steps.
  [[nodiscard]] std::optional<std::uint32_t> user_of(const Communication& own) const {
    const auto user = extreme(own.needed_by, Extreme::first);
    if (!user || number(work_.operations[work_.order[*user]].microbatch) < 0) return std::nullopt;
    return user;
  }

  [[nodiscard]] Duration between(std::uint32_t begin, std::uint32_t end) const {
    return begin < end ? before_[end] - before_[begin] : Duration{};
  }

  [[nodiscard]] Duration independent(const Communication& own, std::optional<std::uint32_t> user,
                                     std::optional<std::uint32_t> maker) const {
    const auto end = static_cast<std::uint32_t>(work_.order.size());
    if (own.holds == Holds::weights && user) {
      const auto use = std::ranges::upper_bound(starts_, *user);
      if (use - starts_.begin() < 2) return {};
      return between(*(use - 2), *user);
    }
    // Weights of all replicas are gathered from the start on.
    const std::uint32_t begin = maker ? *maker + 1 : 0;
    if (user) return between(begin, *user);
    const auto next = std::ranges::upper_bound(sums_, begin);
    return between(begin, next == sums_.end() ? end : *next);
  }

  const IterationPlan& plan_;
  DeviceId stage_;
  const StageWork& work_;
  IndexedVector<OperationId, std::uint32_t> positions_;
  std::vector<Duration> before_;              ///< by place in the order: what all before it take
  std::vector<std::uint32_t> starts_, sums_;  ///< of uses of units; where sums can begin
};

}  // namespace

namespace {

/// Sizes of units and times of operators are cut to whole bytes and nanoseconds.
template <typename Value>
bool is_near(Value a, Value b) {
  constexpr int kPart = 100;
  return std::max(a, b).count() - std::min(a, b).count() <= std::max(a, b).count() / kPart;
}

bool are_of_one_class(const CommunicationClass& a, const CommunicationClass& b) {
  const auto exact = [](const CommunicationClass& each) {
    return std::tie(each.traffic, each.kind, each.members, each.tier, each.beside, each.work);
  };
  return exact(a) == exact(b) && is_near(a.size, b.size) && is_near(a.computation, b.computation) &&
         is_near(a.independent, b.independent);
}

}  // namespace

std::vector<CommunicationClass> communication_classes(const IterationPlan& plan) {
  std::vector<CommunicationClass> classes;
  for (const DeviceId stage : plan.stages.ids()) {
    const Classifier classifier{plan, stage};
    for (const CommunicationId id : plan.stages[stage].issue) {
      CommunicationClass own = classifier.class_of(id);
      const auto known = std::ranges::find_if(
          classes, [&](const CommunicationClass& each) { return are_of_one_class(each, own); });
      if (known == classes.end())
        classes.push_back(std::move(own));
      else
        known->all.push_back(own.all.front());
    }
  }
  return classes;
}

}  // namespace longhaul::collective
