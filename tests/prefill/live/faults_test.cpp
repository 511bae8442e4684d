// Requests, clients that go, GPUs that are drained and come back, a datacenter's controller that
// dies, a run that ends: each request has one last answer, and training's blocks wait for none of
// it.
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "prefill/live/live_stretches.hpp"
#include "support/filled_stretches.hpp"

namespace longhaul::prefill {
namespace {

using testing::PlacedStretch;

/// What happens when, by the clock of requests, and what was said.
class SeededFaults final : public Arrivals {
public:
  struct Drain {
    Duration from{}, until{};
    std::int32_t pipeline = 0;
  };
  void collect(Duration now, std::vector<Request>& arrived,
               std::vector<std::int64_t>& cancelled) override {
    now_ = now;
    while (next_ < requests.size() && requests[next_].arrival <= now)
      arrived.push_back(requests[next_++]);
    std::erase_if(goes, [&](const auto& each) {
      if (each.first > now) return false;
      cancelled.push_back(each.second);
      return true;
    });
  }
  [[nodiscard]] Duration next_look(Duration now) const override {
    Duration next = next_ < requests.size() ? requests[next_].arrival : Duration::max();
    for (const auto& [at, request] : goes) next = std::min(next, at);
    for (const Drain& each : drains)
      for (const Duration at : {each.from, each.until})
        if (at > now) next = std::min(next, at);
    return next;
  }
  [[nodiscard]] std::vector<Request> rest() override {
    return {requests.begin() + static_cast<std::ptrdiff_t>(std::exchange(next_, requests.size())),
            requests.end()};
  }
  [[nodiscard]] std::vector<std::int64_t> offered() const override {
    std::vector<std::int64_t> ids;
    for (const Request& each : requests) ids.push_back(each.id);
    return ids;
  }
  void tell(const RequestNews& news) override {
    first.try_emplace(news.request, now_);
    last_at[news.request] = now_;
    why[news.request] = news.why;
    if (news.kind == NewsKind::placed) {
      ++placed[news.request];
      late_placements += is_closing();
      for (const Drain& each : drains)
        drained_placements +=
            each.pipeline == news.pipeline && each.from <= now_ && now_ < each.until;
      return;
    }
    last[news.request].push_back(news.kind);
  }
  [[nodiscard]] bool is_drained(std::size_t /*model*/, std::int32_t pipeline) const override {
    return std::ranges::any_of(drains, [&](const Drain& each) {
      return each.pipeline == pipeline && each.from <= now_ && now_ < each.until;
    });
  }

  /// The run ends with the stretch of this time.
  [[nodiscard]] bool is_closing() const { return closes && now_ >= *closes; }

  std::vector<Request> requests;
  std::optional<Duration> closes;
  std::vector<std::pair<Duration, std::int64_t>> goes;
  std::vector<Drain> drains;
  std::map<std::int64_t, Duration> first;  ///< when something was said of it
  std::map<std::int64_t, Duration> last_at;
  std::map<std::int64_t, std::string> why;
  std::map<std::int64_t, int> placed;
  std::map<std::int64_t, std::vector<NewsKind>> last;
  int drained_placements = 0, late_placements = 0;

private:
  std::size_t next_ = 0;
  Duration now_{};
};

/// Stretches of training beside these faults.
class FaultyRun {
public:
  FaultyRun(const PlacedStretch& stretch, SeededFaults& faults, std::optional<Duration> dies_at)
      : faults_{faults},
        planned_{stretch.times},
        training_{with_controller(stretch)},
        live_{training_,
              stretch.times,
              stretch.bubbles,
              stretch.served,
              none_,
              faults,
              Rank{stretch.scenario.training_ranks()},
              options(dies_at, faults)} {}

  void play(int stretches, Duration planned) {
    for (int i = 0; i < stretches; ++i) {
      live_.begin();
      const OpResults results = sim::simulate_results(live_.plan());
      Duration wall{};
      for (const OpId op : live_.live().training)
        wall = std::max(wall, results.times[index(op)].end);
      EXPECT_EQ(wall, planned);
      for (std::size_t op = 0; op < planned_.size(); ++op)
        late_ops += results.times[index(live_.live().training[op])].start > planned_[op].start;
      std::set<std::int32_t> begun;
      for (const BegunSlot& each : live_.begun())
        EXPECT_TRUE(begun.insert(each.request).second) << each.request << " began twice";
      (void)live_.controller().end_stretch(wall, begun, ends(results));
      if (faults_.is_closing()) break;
    }
    live_.controller().close();
  }

  int late_ops = 0;  ///< of training, in all stretches

private:
  [[nodiscard]] static Plan with_controller(const PlacedStretch& stretch) {
    Plan plan = stretch.plan;
    plan.ranks.push_back({});
    plan.ranks.back().role = RankRole::controller;
    return plan;
  }
  [[nodiscard]] static LiveOptions options(std::optional<Duration> dies_at,
                                           const SeededFaults& faults) {
    LiveOptions options;
    if (faults.closes) options.controller.closes = [&faults] { return faults.is_closing(); };
    if (dies_at) options.controller.deaths = {{DatacenterId{0}, *dies_at}};
    options.slots = 48;
    return options;
  }
  [[nodiscard]] std::map<std::int32_t, Duration> ends(const OpResults& results) const {
    std::map<std::int32_t, Duration> ends;
    for (const BegunSlot& each : live_.begun()) {
      const SlotStage& last = live_.live().slot(each.pipeline, each.slot).back();
      const std::size_t op = index(last.first) + to_size(last.parts) - 1;
      if (results.outcomes.empty() || has_run(results.outcomes[op]))
        ends[each.request] = results.times[op].end;
    }
    return ends;
  }

  const SeededFaults& faults_;
  const OpTimes& planned_;
  std::vector<Request> none_;
  Plan training_;
  LiveStretches live_;
};

TEST(LiveFaults, LoseNoRequestAndAnswerNoneTwice) {
  constexpr int kStretches = 3;
  std::map<NewsKind, int> counts;
  int faults = 0, again = 0, late_done = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(seed);
    Random random{derived_seed(seed, 0x6661756c)};
    const PlacedStretch stretch = testing::random_stretch(random);
    const Duration all = kStretches * stretch.bubbles.period;
    const auto sometime = [&] { return Duration{random.between(0, all.count())}; };
    SeededFaults told;
    told.requests = testing::random_requests(random);
    for (const Request& each : told.requests)
      if (random.between(0, 3) == 0) told.goes.emplace_back(sometime(), each.id);
    for (const Served& each : stretch.served)
      for (const Pipeline& own : each.serving.pipelines)
        if (random.between(0, 1) == 0) {
          const Duration from = sometime();
          told.drains.push_back({from, from + sometime(), own.number});
        }
    std::optional<Duration> dies;
    if (random.between(0, 2) == 0) dies = sometime();
    if (random.between(0, 3) == 0) told.closes = sometime();
    faults += static_cast<int>(std::ssize(told.goes) + std::ssize(told.drains)) + dies.has_value();
    const std::vector<Request> asked = told.requests;
    FaultyRun run{stretch, told, dies};
    run.play(kStretches, stretch.bubbles.period);
    ASSERT_EQ(run.late_ops, 0) << "no block and no message of training";
    ASSERT_EQ(told.last.size(), asked.size());
    for (const Request& each : asked) {
      ASSERT_EQ(told.last[each.id].size(), 1U) << "request " << each.id;
      ++counts[told.last[each.id].front()];
      again += told.placed[each.id] > 1;
      if (told.closes || each.arrival >= all) continue;
      ASSERT_EQ(told.first[each.id], each.arrival) << "request " << each.id;
      const NewsKind last = told.last[each.id].front();
      if (last == NewsKind::failed) {
        ASSERT_TRUE(dies && told.last_at[each.id] >= *dies) << "request " << each.id;
      }
      late_done += last == NewsKind::done && dies && each.arrival >= *dies;
    }
    ASSERT_EQ(told.drained_placements, 0);
    ASSERT_EQ(told.late_placements, 0);
  }
  EXPECT_GT(faults, 3000);
  EXPECT_GT(again, 20) << "drained GPUs give prompts back";
  EXPECT_EQ(late_done, 0) << "of those that came when the controller was dead";
  for (const NewsKind kind :
       {NewsKind::done, NewsKind::refused, NewsKind::cancelled, NewsKind::failed})
    EXPECT_GT(counts[kind], 300) << to_string(kind);
}

// Two GPUs: device 0 is idle from 200 to 500 ms, device 1 to 100 and from 700 on, of 900.
TEST(LiveFaults, ADrainedGpuBeginsNothingUntilItIsBack) {
  Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  scenario.costs.forward.assign(2, 100ms);
  scenario.costs.backward.assign(2, 200ms);
  scenario.costs.message.assign(2, Bytes{});
  const PlacedStretch stretch{scenario, "gpipe", 1};
  SeededFaults told;
  told.requests = {{0, 110ms, 100}, {1, 120ms, 100}, {2, 950ms, 100}, {3, 1050ms, 100}};
  told.drains = {{150ms, 1000ms, 0}};
  FaultyRun{stretch, told, {}}.play(2, 900ms);
  for (const Request& each : told.requests)
    EXPECT_EQ(told.last[each.id], std::vector{NewsKind::done}) << each.id;
  EXPECT_EQ(told.placed[0], 2) << "given back at 150 ms, and placed in the next stretch";
  EXPECT_EQ(told.placed[1], 2);
  EXPECT_EQ(told.placed[3], 1);
}

// As the run is told to end request 0 runs, 1 has its place, 2 waits for the next stretch: 0 is
// done, the others are refused, and so is 3, which comes after it, at once.
TEST(LiveFaults, ARunThatEndsBeginsNothingAndEndsWhatRuns) {
  Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  scenario.costs.forward.assign(2, 100ms);
  scenario.costs.backward.assign(2, 200ms);
  scenario.costs.message.assign(2, Bytes{});
  const PlacedStretch stretch{scenario, "gpipe", 1};
  SeededFaults told;
  told.requests = {{0, 110ms, 100}, {1, 120ms, 150}, {2, 130ms, 180}, {3, 800ms, 10}};
  told.closes = 250ms;
  FaultyRun{stretch, told, {}}.play(2, 900ms);
  EXPECT_EQ(told.last[0], std::vector{NewsKind::done});
  for (const std::int64_t refused : {1, 2, 3})
    EXPECT_EQ(told.last[refused], std::vector{NewsKind::refused}) << refused;
  EXPECT_EQ(told.placed[1], 1) << "it had a place, from 300 ms on";
  EXPECT_EQ(told.placed[3], 0);
}

/// Two GPUs: device 0, in datacenter "one", is idle from 200 to 500 ms, device 1 to 100 and from
/// 700 on, of 900.
PlacedStretch two_gpus(DatacenterId second) {
  Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  scenario.costs.forward.assign(2, 100ms);
  scenario.costs.backward.assign(2, 200ms);
  scenario.costs.message.assign(2, Bytes{});
  scenario.datacenters.resize(2);
  scenario.datacenters[0].name = "one";
  scenario.datacenters[1].name = "two";
  scenario.placement[1] = second;
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}})
    scenario.links.push_back(
        {.from = DatacenterId{from}, .to = DatacenterId{to}, .bandwidth = Bandwidth::unlimited()});
  return {scenario, "gpipe", 1};
}

// It dies before device 0's bubble opens: what it had given goes on; what waits for the next
// stretch fails then, and what comes later as it comes. Training is played to its end.
TEST(LiveFaults, ADeadControllerLeavesTrainingAndWhatItHadGivenAlone) {
  const PlacedStretch stretch = two_gpus(DatacenterId{0});
  SeededFaults told;
  told.requests = {{0, 110ms, 100}, {1, 120ms, 290}, {2, 600ms, 100}};
  FaultyRun run{stretch, told, 150ms};
  run.play(2, 900ms);
  EXPECT_EQ(run.late_ops, 0);
  EXPECT_EQ(told.last[0], std::vector{NewsKind::done});
  EXPECT_EQ(told.placed[1], 1) << "at 1,100 ms";
  for (const auto& [request, at] : {std::pair{1, 150ms}, {2, 600ms}}) {
    EXPECT_EQ(told.last[request], std::vector{NewsKind::failed});
    EXPECT_EQ(told.last_at[request], at);
    EXPECT_EQ(told.why[request], "the controller of one is gone");
  }
}

// The other datacenter's takes what comes later, as far as its bubbles hold it.
TEST(LiveFaults, AnotherDatacenterTakesOver) {
  const PlacedStretch stretch = two_gpus(DatacenterId{1});
  SeededFaults told;
  told.requests = {{0, 110ms, 100}, {1, 120ms, 290}, {2, 600ms, 100}, {3, 610ms, 250}};
  FaultyRun{stretch, told, 150ms}.play(2, 900ms);
  EXPECT_EQ(told.last[0], std::vector{NewsKind::done});
  EXPECT_EQ(told.last[1], std::vector{NewsKind::failed});
  EXPECT_EQ(told.last[2], std::vector{NewsKind::done});
  EXPECT_EQ(told.last[3], std::vector{NewsKind::refused}) << "device 1 is idle for 200 ms at most";
  EXPECT_EQ(told.last_at[3], 610ms);
}

}  // namespace
}  // namespace longhaul::prefill
