#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "plan/check_extras.hpp"
#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::testing {

/// What the rules of plans with all that plan/extras/ has say of an op at an instant.
class EventRules {
public:
  EventRules(const Plan& plan, const plan::Stream& stream)
      : plan_{plan}, stream_{stream}, count_{plan.ops.size()} {
    ops_.resize(count_ * static_cast<std::size_t>(stream.iterations));
    optional_ = plan::ops_that_may_not_run(plan, plan::MayNotRun::optional);
    for (const plan::LaneSource& each : plan.extras.sources)
      if (plan.lanes[index(each.lane)].count > 0) sources_[index(each.lane)].source = each.make();
    free_.resize(plan.resources.size());
    for (std::size_t r = 0; r < free_.size(); ++r) free_[r].assign(plan.resources[r].capacity, 0);
    begun_.assign(static_cast<std::size_t>(stream.iterations), kNone);
    begun_[static_cast<std::size_t>(stream.first)] = 0;
    for (auto& [lane, state] : sources_) state.iteration = stream.first;
    for (std::size_t i = 0; i < count_ * static_cast<std::size_t>(stream.first); ++i) {
      ops_[i].served = true;  // and over
      ops_[i].ready = ops_[i].start = ops_[i].hold_end = ops_[i].end = 0;
    }
  }

protected:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kParts = 12;  // of a nanosecond
  struct Own {
    bool served = false, skipped = false, drawn = false;
    std::int64_t ready = kNone, start = kNone, hold_end = kNone, end = kNone;
    std::int64_t left = 0;  ///< parts, of a block whose end is open
    Outcome outcome = Outcome::ran;
    std::optional<Duration> takes{};  ///< of one that a source drew
    plan::DrawnWords words{};
  };
  struct SourceState {
    std::unique_ptr<plan::OpSource> source;
    int iteration = 0;
    bool over = false, waits_for_end = false;
    std::int64_t until = 0;
    std::size_t drawn = static_cast<std::size_t>(-1);
    std::set<std::tuple<std::int64_t, int, std::size_t>> heard{};
  };

  const Op& op(std::size_t i) const { return plan_.ops[i % count_]; }
  OpId id(std::size_t i) const { return OpId{static_cast<std::uint32_t>(i % count_)}; }
  int iteration(std::size_t i) const { return static_cast<int>(i / count_); }
  const Lane& lane(std::size_t i) const { return plan_.lane_of(id(i)); }
  std::size_t other(std::size_t i) const { return i / count_ * count_ + op(i).match; }
  bool optional(std::size_t i) const { return optional_[i % count_] != 0; }
  bool is_message(std::size_t i) const {
    return op(i).kind == OpKind::send || op(i).kind == OpKind::recv;
  }
  bool sourced(std::size_t i) const { return sources_.contains(index(op(i).lane)); }
  bool passed(std::size_t i) const { return ops_[i].served || ops_[i].skipped; }
  bool ended(std::size_t i) const { return ops_[i].end <= now_; }

  std::int64_t duration(std::size_t i) const {
    if (ops_[i].takes) return ops_[i].takes->count();
    std::int64_t takes = op(i).duration.count();
    for (const plan::StreamSetting& setting : stream_.settings)
      for (const plan::StreamSetting::OpDuration& each : setting.durations)
        if (setting.from_iteration <= iteration(i) && each.op == id(i))
          takes = each.duration.count();
    return takes;
  }
  std::optional<plan::OpWindow> window(std::size_t i) const {
    for (const plan::OpWindow& each : plan_.extras.windows)
      if (each.op == id(i)) return each;
    return std::nullopt;
  }
  bool fits(std::size_t i, std::int64_t start) const {
    const auto own = window(i);
    if (!own || own->deadline == plan::kNoDeadline) return true;
    return start + duration(i) <=
           begun_[static_cast<std::size_t>(iteration(i))] + own->deadline.count();
  }
  std::vector<std::size_t> needs(std::size_t i) const {
    std::vector<std::size_t> all;
    for (const OpId before : plan_.after_of(id(i)))
      all.push_back(i / count_ * count_ + index(before));
    for (const plan::FarDependency& far : plan_.extras.far)
      if (far.op == id(i) && far.strength == plan::Strength::strong &&
          iteration(i) >= far.iterations_back)
        all.push_back(i / count_ * count_ - static_cast<std::size_t>(far.iterations_back) * count_ +
                      index(far.before));
    return all;
  }

  /// Has everything that comes before it in its lane been served?
  bool has_turn(std::size_t i) const {
    if (sourced(i)) return ops_[i].drawn;
    const Lane& own = lane(i);
    bool lane_has_mandatory = false;
    for (std::uint32_t k = 0; k < own.count; ++k)
      lane_has_mandatory = lane_has_mandatory || !optional(index(own.first) + k);
    for (int n = 0; n <= iteration(i); ++n) {
      for (std::uint32_t k = 0; k < own.count; ++k) {
        const std::size_t before = static_cast<std::size_t>(n) * count_ + index(own.first) + k;
        const bool counts = lane_has_mandatory ? !optional(before) : n < iteration(i);
        if (n == iteration(i) && (own.serve != Serve::order || before >= i)) continue;
        if (counts && !passed(before)) return false;
      }
    }
    return true;
  }
  /// When it is ready by itself; kNone: not by now.
  std::int64_t own_ready(std::size_t i) const {
    if (passed(i) || !has_turn(i)) return kNone;
    std::int64_t ready = 0;
    for (const std::size_t need : needs(i)) {
      if (!ended(need)) return kNone;
      ready = std::max(ready, ops_[need].end);
    }
    if (const auto own = window(i)) {
      const std::int64_t begun = begun_[static_cast<std::size_t>(iteration(i))];
      if (begun == kNone || begun + own->not_before.count() > now_) return kNone;
      ready = std::max(ready, begun + own->not_before.count());
    }
    return ready;
  }
  /// Both sides of a message, all members of a collective.
  std::int64_t ready(std::size_t i) const {
    std::int64_t all = own_ready(i);
    if (all == kNone) return kNone;
    if (op(i).kind == OpKind::send) {
      const std::int64_t there = own_ready(other(i));
      if (there == kNone) return kNone;
      all = std::max(all, there);
    }
    return all;
  }
  std::vector<std::size_t> members(std::size_t i) const {
    std::vector<std::size_t> all;
    for (const OpId member : plan_.collectives[op(i).match])
      all.push_back(i / count_ * count_ + index(member));
    return all;
  }
  bool shared_in_order(std::size_t i) const {
    if (plan::serving_of(plan_, id(i)) != Serve::order) return false;
    for (const ResourceId held : plan_.resources_of(id(i))) {
      const Resource& resource = plan_.resources[index(held)];
      if (resource.lanes > 1 || resource.capacity != 1) return true;
    }
    return false;
  }
  std::int64_t& earliest(ResourceId resource) {
    return *std::ranges::min_element(free_[index(resource)]);
  }
  bool holds_free(std::size_t i) {
    for (const ResourceId held : plan_.resources_of(id(i)))
      if (earliest(held) > now_) return false;
    return true;
  }

  const Plan& plan_;
  const plan::Stream& stream_;
  std::size_t count_;
  std::int64_t now_ = 0;
  std::vector<Own> ops_;
  std::vector<std::uint8_t> optional_;
  std::map<std::size_t, SourceState> sources_;
  std::vector<std::vector<std::int64_t>> free_;  ///< by resource: when its places are free
  std::vector<std::int64_t> begun_;              ///< by iteration
  std::set<std::pair<std::int64_t, int>> begins_;
};

}  // namespace longhaul::testing
