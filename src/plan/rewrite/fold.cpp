#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "plan/rewrite/expand.hpp"
#include "plan/rewrite/renumber.hpp"

namespace longhaul::plan {
namespace {

/// Joins the operators of each block into one op, where that loses nothing.
class Folding {
public:
  explicit Folding(const Plan& plan) : plan_{plan}, lists_{*plan.operators} {
    block_.resize(plan.ops.size());
    is_last_.assign(plan.ops.size(), false);
  }

  Result<Plan> run() {
    for (const Lane& lane : plan_.lanes)
      if (auto why = join(lane)) return *std::move(why);
    if (auto why = why_inside()) return *std::move(why);
    return take();
  }

private:
  [[nodiscard]] std::string text(std::size_t op) const {
    return to_text(plan_, OpId{static_cast<std::uint32_t>(op)});
  }

  [[nodiscard]] static Refusal inside(const std::string& what) {
    return refused(
        "{}, so that a block of the plan is no unit: what happens inside it is lost at block "
        "granularity. Use --granularity operator.",
        what);
  }

  /// Numbers the blocks of a lane and says how many ops each is.
  [[nodiscard]] std::optional<Refusal> join(const Lane& lane) {
    const std::size_t end = index(lane.first) + lane.count;
    const auto first_block = static_cast<std::uint32_t>(count_.size());
    for (std::size_t i = index(lane.first); i < end;) {
      std::size_t ops = 1;
      if (const OperatorStep* const step = plan_.operator_of(plan_.ops[i])) {
        const OperatorListId id = lists_.list_with(plan_.ops[i].match - 1);
        ops = lists_.list(id).size();
        if (step != lists_.list(id).data() || i + ops > end || !is_list(i, ops))
          return inside(fmt::format("{} stands where its block's list has another", text(i)));
      }
      for (std::size_t k = i; k < i + ops; ++k)
        block_[k] = static_cast<std::uint32_t>(count_.size());
      is_last_[i + ops - 1] = true;
      count_.push_back(static_cast<std::uint32_t>(ops));
      i += ops;
    }
    lanes_.push_back({first_block, static_cast<std::uint32_t>(count_.size()) - first_block});
    return std::nullopt;
  }

  /// Are the ops from `first` on the operators of one block, with the times of its list?
  [[nodiscard]] bool is_list(std::size_t first, std::size_t ops) const {
    const Op& head = plan_.ops[first];
    Duration whole{};
    for (std::size_t i = 0; i < ops; ++i) {
      const Op& op = plan_.ops[first + i];
      if (op.block() != head.block() || op.match != head.match + i) return false;
      whole += op.duration;
    }
    const auto list = lists_.list(lists_.list_with(head.match - 1));
    Duration end{};
    for (std::size_t i = 0; i < ops; ++i) {
      end += plan_.ops[first + i].duration;
      if (end != portion(whole, list[i].end, list.back().end)) return false;
    }
    return true;
  }

  /// Does something wait inside a block, or for the inside of one?
  [[nodiscard]] std::optional<Refusal> why_inside() const {
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      const OpId id{static_cast<std::uint32_t>(i)};
      const bool is_first = i == 0 || is_last_[i - 1];
      for (const OpId before : plan_.after_of(id)) {
        if (!is_first) return inside(fmt::format("{} waits for {}", text(i), text(index(before))));
        if (!is_last_[index(before)])
          return inside(fmt::format("{} waits for {}, not for the end of its block", text(i),
                                    text(index(before))));
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] Plan take() const {
    const auto block_of = [&](OpId id) { return OpId{block_[index(id)]}; };
    Plan out = renumbered_frame(plan_, block_of);
    out.granularity = Granularity::blocks;
    for (const OpId before : plan_.after) out.after.push_back(block_of(before));
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      out.lanes[l].first = OpId{lanes_[l].first};
      out.lanes[l].count = lanes_[l].count;
    }
    out.ops.reserve(count_.size());
    std::size_t next = 0;
    for (const std::uint32_t ops : count_) {
      Op op = renumbered(plan_.ops[next], block_of, block_of);
      if (plan_.operator_of(op) != nullptr)
        op.match = static_cast<std::uint32_t>(index(lists_.list_with(op.match - 1)));
      for (std::size_t i = next + 1; i < next + ops; ++i) {
        op.duration += plan_.ops[i].duration;
        op.size += plan_.ops[i].size;
      }
      out.ops.push_back(op);
      next += ops;
    }
    return out;
  }

  const Plan& plan_;
  const OperatorLists& lists_;
  std::vector<std::uint32_t> block_;  ///< of each op
  std::vector<bool> is_last_;         ///< of its block
  std::vector<std::uint32_t> count_;  ///< ops of each block
  std::vector<OpRange> lanes_;        ///< of blocks
};

}  // namespace

Result<Plan> fold(const Plan& plan) {
  if (plan.granularity == Granularity::blocks) return plan;
  return Folding{plan}.run();
}

}  // namespace longhaul::plan
