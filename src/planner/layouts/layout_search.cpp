#include "planner/layouts/layout_search.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/index.hpp"
#include "planner/layouts/layout_front.hpp"

namespace longhaul::planner {
namespace {

struct LayoutCandidate {
  Layout layout;
  Duration bound{}, of_any_order{};
  Bytes memory;
  double priced_gpus = 0;
  [[nodiscard]] double cost() const { return static_cast<double>(bound.count()) * priced_gpus; }
};

class LayoutSearchRun {
public:
  LayoutSearchRun(const LayoutProblem& problem, const LayoutSpace& space,
                  const LayoutSearchOptions& options)
      : problem_{problem},
        space_{space},
        options_{options},
        timer_{problem},
        front_{options.second},
        late_front_{options.second} {}

  [[nodiscard]] bool any_fits() {
    enumerate();
    return !candidates_.empty();
  }

  LayoutSearch run() {
    enumerate();
    found_.feasible = std::ssize(candidates_);
    // The thriftiest first: they beat most of what follows, and are what a search that is stopped
    // has.
    if (!options_.exhaustive || stopped_)
      std::ranges::stable_sort(candidates_, {}, &LayoutCandidate::cost);
    std::size_t next = 0;
    for (; next < candidates_.size(); ++next) {
      const bool is_asked = next % kOften == 0 || knows_links(candidates_[next].layout.order);
      if (is_asked && asks_to_stop() && next >= kOften) break;
      consider(candidates_[next]);
    }
    note_gap(next);
    found_.blocks = orders_.blocks() + blocks_;
    if (!options_.keeps_all) found_.plans = front_.plans();
    std::ranges::sort(all_, {}, &LayoutPlan::layout);
    if (options_.keeps_all) found_.plans = std::move(all_);
    return std::move(found_);
  }

private:
  void enumerate() {
    Layout layout;
    for (const int tensor : space_.tensor)
      for (const int data : space_.data)
        for (const int pipeline : space_.pipeline) {
          layout.tensor = tensor;
          layout.data = data;
          layout.pipeline = pipeline;
          for (const int micro_batch : space_.micro_batch) {
            layout.micro_batch = micro_batch;
            for (const LayoutOrder order : space_.orders) add_of_order(layout, order);
          }
        }
  }

  void add_of_order(Layout layout, LayoutOrder order) {
    layout.order = order;
    std::vector<int> chunks{is_wave(order) ? 2 : 1};
    if (order == LayoutOrder::interleaved) chunks = space_.chunks;
    for (const int count : chunks)
      for (const RecomputeKind recompute : space_.recompute)
        for (const profile::ShardingKind sharding : space_.sharding)
          for (std::size_t placing = 0; placing < problem_.placings.size(); ++placing) {
            layout.chunks = count;
            layout.recompute = recompute;
            layout.sharding = sharding;
            layout.placing = static_cast<int>(placing);
            add(layout);
          }
  }

  void add(const Layout& layout) {
    constexpr std::int64_t kPointsOften = 1024;
    if (++found_.points % kPointsOften == 0 && asks_to_stop()) stopped_ = true;
    if (stopped_) return refuse("stopped");
    if (space_.has_gpus && !space_.has_gpus(layout.gpus())) return refuse("number of GPUs");
    if (const std::string_view why = why_no_layout(problem_, layout); !why.empty())
      return refuse(why);
    const Bytes memory = memory_of(problem_, layout);
    if (problem_.memory && memory > *problem_.memory) return refuse("memory");
    if (timer_.graph(layout) == nullptr) return refuse("beyond measured products");
    const LayoutTimes times = timer_.times(layout);
    candidates_.push_back({layout, least_makespan(layout, times), least_of_any_order(layout, times),
                           memory, priced_gpus(problem_, layout)});
    note_least(candidates_.back());
  }

  void note_least(const LayoutCandidate& candidate) {
    if (options_.longest && candidate.of_any_order > *options_.longest) return;
    const double cost = static_cast<double>(candidate.of_any_order.count()) * candidate.priced_gpus;
    const bool is_soonest = !found_.soonest || candidate.of_any_order < found_.soonest->bound;
    const bool is_thriftiest = !found_.thriftiest || cost < found_.thriftiest->cost();
    if (!is_soonest && !is_thriftiest) return;
    LayoutPlan plan = plan_of(candidate);
    plan.iteration = plan.bound = candidate.of_any_order;
    if (is_soonest) found_.soonest = plan;
    if (is_thriftiest) found_.thriftiest = plan;
  }

  [[nodiscard]] static LayoutPlan plan_of(const LayoutCandidate& candidate) {
    LayoutPlan plan;
    plan.layout = candidate.layout;
    plan.bound = candidate.bound;
    plan.memory = candidate.memory;
    plan.priced_gpus = candidate.priced_gpus;
    return plan;
  }

  void refuse(std::string_view why) { ++found_.refused[std::string{why}]; }

  /// Layouts that are evaluated between questions, and at least.
  static constexpr std::size_t kOften = 8;
  [[nodiscard]] bool asks_to_stop() const {
    return stopped_ || (options_.is_stopped && options_.is_stopped());
  }

  void consider(const LayoutCandidate& candidate) {
    if (!options_.exhaustive) {
      if (ends_late(candidate)) return prune("deadline");
      if (front_.beats(candidate.bound, candidate.priced_gpus, candidate.layout))
        return prune("bound");
    }
    ++found_.evaluated;
    LayoutPlan plan = plan_of(candidate);
    if (!add_time(plan)) return prune("no order");
    const bool is_late = options_.longest && plan.iteration > *options_.longest;
    if (is_late && !options_.keeps_late) return;
    (is_late ? late_front_ : front_).add(plan);
    if (options_.keeps_all) all_.push_back(plan);
  }

  /// And is of no use: where late ones are kept, one of them beats it.
  [[nodiscard]] bool ends_late(const LayoutCandidate& candidate) const {
    if (!options_.longest || candidate.bound <= *options_.longest) return false;
    return !options_.keeps_late ||
           late_front_.beats(candidate.bound, candidate.priced_gpus, candidate.layout);
  }

  /// Plays the plan's order; false: there is none.
  [[nodiscard]] bool add_time(LayoutPlan& plan) {
    const LayoutTimes times = timer_.times(plan.layout);
    if (!knows_links(plan.layout.order)) {
      plan.iteration = orders_.makespan(plan.layout, times);
      return true;
    }
    std::optional<AwareOrder> order = make_aware_order(problem_, plan.layout, times);
    if (!order) return false;
    for (const std::vector<Block>& row : order->schedule->rows) blocks_ += std::ssize(row);
    plan.iteration = order->makespan;
    plan.memory = order->memory;
    plan.schedule = std::move(order->schedule);
    return true;
  }

  void prune(const char* why) { ++found_.pruned[why]; }

  /// Of what the search did not look at; of points whose bound is not known there is none.
  void note_gap(std::size_t next) {
    if (stopped_) found_.gap_time = found_.gap_cost = std::nullopt;
    if (next == candidates_.size()) return;
    Duration shortest = Duration::max();
    double thriftiest = 1e300;
    for (std::size_t i = next; i < candidates_.size(); ++i) {
      shortest = std::min(shortest, candidates_[i].bound);
      thriftiest = std::min(thriftiest, candidates_[i].cost());
    }
    found_.pruned["stopped"] += std::ssize(candidates_) - static_cast<std::int64_t>(next);
    const std::vector<LayoutPlan> plans = front_.plans();
    if (plans.empty() || stopped_) return;
    const double best = static_cast<double>(plans.front().iteration.count());
    found_.gap_time = std::max(0.0, best / static_cast<double>(shortest.count()) - 1);
    found_.gap_cost = std::max(0.0, plans.back().cost() / thriftiest - 1);
  }

  const LayoutProblem& problem_;
  const LayoutSpace& space_;
  const LayoutSearchOptions& options_;
  LayoutTimer timer_;
  OrderTimer orders_;
  std::vector<LayoutCandidate> candidates_;
  LayoutFront front_, late_front_;
  std::vector<LayoutPlan> all_;
  LayoutSearch found_;
  std::int64_t blocks_ = 0;  ///< of orders that know the links
  bool stopped_ = false;     ///< before every point was looked at
};

int read_count(const char* option, std::string_view word, std::string_view text, int most) {
  int value = 0;
  const char* const end = word.data() + word.size();
  const auto [stopped, problem] = std::from_chars(word.data(), end, value);
  if (problem != std::errc{} || stopped != end || value < 1 || value > most)
    fail("{}: \"{}\" in \"{}\" is no whole number from 1 to {}. Give a list such as 1,2,4 or 4:16.",
         option, word, text, most);
  return value;
}

}  // namespace

LayoutSearch search_layouts(const LayoutProblem& problem, const LayoutSpace& space,
                            const LayoutSearchOptions& options) {
  return LayoutSearchRun{problem, space, options}.run();
}

bool any_layout_fits(const LayoutProblem& problem, const LayoutSpace& space) {
  const LayoutSearchOptions options;
  return LayoutSearchRun{problem, space, options}.any_fits();
}

std::set<Layout> layouts_on_front(const std::vector<LayoutPlan>& plans) {
  LayoutFront front;
  for (const LayoutPlan& plan : plans) front.add(plan);
  std::set<Layout> layouts;
  for (const LayoutPlan& plan : front.plans()) layouts.insert(plan.layout);
  return layouts;
}

std::vector<int> read_counts(const char* option, std::string_view text, int most) {
  std::set<int> counts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const std::size_t colon = word.find(':');
    const int low = read_count(option, word.substr(0, colon), text, most);
    const int high = colon == std::string_view::npos
                         ? low
                         : read_count(option, word.substr(colon + 1), text, most);
    if (high < low) fail("{}: \"{}\" runs backwards. Write the lesser number first.", option, word);
    for (int value = low; value <= high; ++value) counts.insert(value);
    begin = end + 1;
  }
  return {counts.begin(), counts.end()};
}

std::vector<int> divisors(int of) {
  std::set<int> all;
  for (int value = 1; value <= of / value; ++value)
    if (of % value == 0) all.insert({value, of / value});
  return {all.begin(), all.end()};
}

}  // namespace longhaul::planner
