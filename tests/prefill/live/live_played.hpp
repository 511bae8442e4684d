#pragma once

#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "prefill/live/live_stretches.hpp"
#include "support/filled_stretches.hpp"

namespace longhaul::prefill {

using testing::PlacedStretch;

/// A trace, what was said of each request, and when.
class NotedArrivals final : public Arrivals {
public:
  struct Said {
    std::int64_t request = 0;
    NewsKind kind{};
    Duration at{};
    std::int32_t pipeline = -1;  ///< of a place
    Duration start{};            ///< likewise
    friend bool operator==(const Said&, const Said&) = default;
    friend void PrintTo(const Said& said, std::ostream* out) {
      *out << said.request << " " << to_string(said.kind) << " at " << said.at.count()
           << " ns: pipeline " << said.pipeline << " from " << said.start.count() << " ns";
    }
  };
  explicit NotedArrivals(std::vector<Request> requests) : trace_{std::move(requests)} {}
  void collect(Duration now, std::vector<Request>& arrived,
               std::vector<std::int64_t>& cancelled) override {
    now_ = now;
    trace_.collect(now, arrived, cancelled);
    std::erase_if(goes, [&](const auto& each) {
      if (each.first > now) return false;
      cancelled.push_back(each.second);
      return true;
    });
  }
  [[nodiscard]] Duration next_look(Duration now) const override {
    Duration next = trace_.next_look(now);
    for (const auto& [time, request] : goes) next = std::min(next, time);
    for (const Duration time : drains)
      if (time > now) next = std::min(next, time);
    return next;
  }
  [[nodiscard]] std::vector<Request> rest() override { return trace_.rest(); }
  [[nodiscard]] std::vector<std::int64_t> offered() const override { return trace_.offered(); }
  void tell(const RequestNews& news) override {
    const bool has_place = news.kind == NewsKind::placed;
    said.push_back({news.request, news.kind, now_, has_place ? news.pipeline : -1,
                    has_place ? news.start : Duration{}});
    if (news.kind == NewsKind::refused) reasons[news.request] = news.reason;
  }
  /// Pipeline 0 from the first of `drains` to the second.
  [[nodiscard]] bool is_drained(std::size_t /*model*/, std::int32_t pipeline) const override {
    return pipeline == 0 && drains.size() == 2 && drains[0] <= now_ && now_ < drains[1];
  }

  std::vector<Said> said;
  std::map<std::int64_t, RefusalReason> reasons;
  std::vector<std::pair<Duration, std::int64_t>> goes;
  std::vector<Duration> drains;

private:
  TraceArrivals trace_;
  Duration now_{};
};

/// A stretch, and what is left of it for tests after a simulation.
class LivePlayed {
public:
  LivePlayed(const PlacedStretch& stretch, std::vector<Request> requests, LiveOptions options)
      : stretch_{stretch},
        requests_{std::move(requests)},
        noted_{options.controller.backlog ? std::vector<Request>{} : requests_},
        live_{with_controller(stretch),
              stretch.times,
              stretch.bubbles,
              stretch.served,
              requests_,
              noted_,
              Rank{controller_of(stretch)},
              with_slots(std::move(options))} {}

  /// With blocks that take `factor` of their time.
  LiveFilled play(double factor = 1) {
    return play([factor](const Op& block) { return scaled(block.duration, factor); });
  }
  /// `takes`: of a block, which has the planned duration.
  LiveFilled play(const std::function<Duration(const Op&)>& takes) {
    live_.begin();
    Plan plan = live_.plan();
    for (const OpId id : live_.live().training)
      if (Op& op = plan.ops[index(id)]; op.kind == OpKind::compute) op.duration = takes(op);
    results = sim::simulate_results(plan);
    wall = {};
    for (const OpId op : live_.live().training) wall = std::max(wall, results.times[index(op)].end);
    std::set<std::int32_t> begun;
    for (const BegunSlot& each : live_.begun()) begun.insert(each.request);
    return fill_slots(live_.live(), stretch_.served, live_.begun(),
                      live_.controller().end_stretch(wall, begun), live_.sent(), live_.tokens());
  }
  [[nodiscard]] bool ran(OpId op) const {
    return results.outcomes.empty() || has_run(results.outcomes[index(op)]);
  }
  /// Blocks that a prefill kept waiting.
  [[nodiscard]] int bound(const LiveFilled& filled) const {
    std::set<OpId> prefills;
    for (const FilledStage& stage : filled.filled.stages)
      for (std::size_t op = index(stage.first); op <= index(stage.op); ++op)
        prefills.insert(OpId{static_cast<std::uint32_t>(op)});
    int count = 0;
    for (const OpId op : filled.filled.training)
      if (live_.plan().op(op).kind == OpKind::compute &&
          prefills.contains(results.times[index(op)].bound_by))
        ++count;
    return count;
  }
  [[nodiscard]] LiveStretches& live() { return live_; }
  [[nodiscard]] NotedArrivals& noted() { return noted_; }

  OpResults results;
  Duration wall{};

private:
  [[nodiscard]] static LiveOptions with_slots(LiveOptions options) {
    options.slots = 48;
    return options;
  }
  [[nodiscard]] static std::int32_t controller_of(const PlacedStretch& stretch) {
    return stretch.scenario.training_ranks();
  }
  /// Training's plan, and a rank that has nothing to do in it.
  [[nodiscard]] const Plan& with_controller(const PlacedStretch& stretch) {
    training_ = stretch.plan;
    if (!stretch.scenario.services.empty()) return training_;
    training_.ranks.push_back({});
    training_.ranks.back().role = RankRole::controller;
    return training_;
  }

  const PlacedStretch& stretch_;
  std::vector<Request> requests_;
  NotedArrivals noted_;
  Plan training_;
  LiveStretches live_;
};

/// 2 stages, 2 microbatches, F 100 ms, B 200 ms, no links: GPipe's GPUs are idle from 200 to 500 ms
/// and from 700 to 1,000, of a period of 900.
inline PlacedStretch gpipe_of_two(Duration unit, Duration guard = {}, int iterations = 1) {
  Scenario scenario = serving_scenario(2, 1, linear_model(unit));
  scenario.costs.forward.assign(2, 100ms);
  scenario.costs.backward.assign(2, 200ms);
  scenario.costs.message.assign(2, Bytes{});
  scenario.served.front().guard = guard;
  return {scenario, "gpipe", iterations};
}

inline std::vector<Request> equal_requests(std::int64_t count, std::int64_t tokens,
                                           Duration every) {
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < count; ++i) requests.push_back({i, i * every, tokens});
  return requests;
}

}  // namespace longhaul::prefill
