#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "planner/wan_sharing/turn_portfolio.hpp"
#include "schedule/generators/cell/in_cells.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

/// Parts of the time, or of the moves, for each of the two searches over rows alone.
constexpr int kPartsForRows = 4;
/// Of the time, when the schedules that are generated have had theirs.
constexpr double kShareOfGenerated = 0.7;

SearchOptions part_of(const SearchOptions& options) {
  SearchOptions part = options;
  part.time /= kPartsForRows;
  if (part.moves) *part.moves /= kPartsForRows;
  return part;
}

/// Every B as a D with its W after it, so that the gradient leaves after the D; the turns stay.
Schedule parted(Schedule schedule) {
  schedule.name += ", D/W";
  for (auto& row : schedule.rows) {
    std::vector<Block> parted_row;
    for (Block block : row) {
      const bool is_whole = block.kind == BlockKind::B;
      if (is_whole) block.kind = BlockKind::D;
      parted_row.push_back(block);
      if (!is_whole) continue;
      block.kind = BlockKind::W;
      parted_row.push_back(block);
    }
    row = std::move(parted_row);
  }
  for (LinkOrder& order : schedule.link_orders) {
    for (OrderedMessage& message : order.messages) {
      if (message.producer.kind == BlockKind::B) message.producer.kind = BlockKind::D;
    }
  }
  return schedule;
}

/// Collects what there is to choose from, each simulated with its relays.
class SharedCandidates {
public:
  /// The time of `options` counts from `begin`.
  SharedCandidates(const Scenario& scenario, const SearchOptions& options,
                   std::chrono::steady_clock::time_point begin)
      : scenario_{scenario}, options_{options}, begin_{begin} {}

  /// Those that there is time for.
  void add_generated() {
    const Scenario pooled = schedule::pooled_links(scenario_);
    for (const schedule::Generator& generator : schedule::generators()) {
      const auto& wanted = options_.placements;
      if (!wanted.empty() && std::ranges::find(wanted, generator.placement) == wanted.end())
        continue;
      if (is_enough()) {
        candidates_.rejected.push_back(
            {.schedule = std::string{generator.name},
             .reason = "the time was over before it. Give the search more.",
             .unseen = true});
        continue;
      }
      if (auto why = add(generator, pooled)) reject(std::string{generator.name}, *why);
    }
  }

  void add_found(const SearchResult& found, const std::string& name) {
    Schedule schedule = found.schedule;
    schedule.name = name;
    if (auto why = add_shared(schedule)) reject(name, *why);
  }

  /// Its makespan; refused where it cannot run or does not fit.
  Result<Duration> add(const Schedule& schedule) {
    if (auto violation = schedule::first_violation(schedule, scenario_))
      return Refusal{violation->text};
    const Result<Duration> makespan = try_makespan(schedule, scenario_);
    if (makespan) candidates_.fitting.push_back({schedule, *makespan});
    return makespan;
  }

  [[nodiscard]] Candidates take() {
    std::ranges::stable_sort(candidates_.fitting, {}, &Candidate::makespan);
    return std::move(candidates_);
  }

private:
  [[nodiscard]] bool is_enough() const {
    if (options_.stopped && options_.stopped()) return true;
    return !options_.moves &&
           std::chrono::steady_clock::now() - begin_ > scaled(options_.time, kShareOfGenerated);
  }
  std::optional<Refusal> add(const schedule::Generator& generator, const Scenario& pooled) {
    const Result<Schedule> schedule = schedule::try_generate(generator, scenario_);
    if (!schedule) return schedule.refusal();
    if (schedule->cell > 1) return add_with_parted(*schedule);
    const Result<Schedule> alone = schedule::try_generate(generator, pooled);
    return alone ? add_shared(*alone) : alone.refusal();
  }
  std::optional<Refusal> add_shared(const Schedule& schedule) {
    if (auto violation = schedule::first_violation(schedule, scenario_))
      return Refusal{violation->text};
    const Result<Schedule> shared = try_share_wan(schedule, scenario_);
    return shared ? add_with_parted(*shared) : shared.refusal();
  }
  /// Adds it with D and W apart as well where that ends earlier: the search moves blocks, but parts
  /// none.
  std::optional<Refusal> add_with_parted(const Schedule& schedule) {
    const Result<Duration> whole = add(schedule);
    if (!whole) return whole.refusal();
    const Schedule apart = parted(schedule);
    if (apart.rows == schedule.rows || schedule::first_violation(apart, scenario_))
      return std::nullopt;
    const Result<Duration> makespan = try_makespan(apart, scenario_);
    if (!makespan) return makespan.refusal();
    if (*makespan < *whole) candidates_.fitting.push_back({apart, *makespan});
    return std::nullopt;
  }
  void reject(const std::string& name, const Refusal& why) {
    candidates_.rejected.push_back({name, why.reason});
  }

  const Scenario& scenario_;
  const SearchOptions& options_;
  std::chrono::steady_clock::time_point begin_;
  Candidates candidates_;
};

SearchResult named(SearchResult found) {
  found.schedule.name = schedule::shared_name("best");
  return found;
}

/// The bound over every layout among the candidates, in cells and not.
Bound bound_of(const Candidates& candidates, const Scenario& scenario) {
  std::vector<Schedule> layouts;
  for (const Candidate& candidate : candidates.fitting) {
    const Schedule& schedule = candidate.schedule;
    const bool known = std::ranges::any_of(layouts, [&](const Schedule& layout) {
      return layout.copies == schedule.copies && layout.cell == schedule.cell &&
             layout.device_of_chunk == schedule.device_of_chunk;
    });
    if (!known) layouts.push_back(schedule);
  }
  return lower_bound_of_any(layouts, scenario);
}

}  // namespace

Result<SearchResult> find_shared_best(const Scenario& scenario, const SearchOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  if (options.arrangement != Arrangement::decoupled)
    return refused(
        "{} needs decoupled communication (relays go on while a block waits). Leave --comm out.",
        schedule::shared_name("best"));
  if (!schedule::shares_wan(scenario)) {
    Result<SearchResult> found = try_find_best(scenario, options);
    return found ? named(*std::move(found)) : std::move(found);
  }
  if (scenario.overlap.largest() > 1)
    return refused(
        "{} searches with blocks of one length (with [overlap] messages make them longer). Name a "
        "schedule that shares the WAN and is not looked for, or leave [overlap] out.",
        schedule::shared_name("best"));
  const Result<SearchResult> own = try_find_best(scenario, part_of(options));
  if (!own) return own.refusal();
  const Result<SearchResult> pooled =
      try_find_best(schedule::pooled_links(scenario), part_of(options));
  if (!pooled) return pooled.refusal();
  SharedCandidates candidates{scenario, options, begin};
  candidates.add_generated();
  candidates.add_found(*own, "best");
  candidates.add_found(*pooled, "best of pooled links");
  if (const auto alone = candidates.add(own->schedule); !alone) return alone.refusal();

  SearchResult found;
  found.candidates = candidates.take();
  found.bound = bound_of(found.candidates, scenario);
  found.moves = own->moves + pooled->moves;
  found.accepted = own->accepted + pooled->accepted;
  Candidate best = found.candidates.fitting.front();
  std::vector<Candidate> starts = found.candidates.fitting;
  std::erase_if(starts, [](const Candidate& start) { return start.schedule.cell == 1; });
  if (!starts.empty()) {
    SearchOptions search = options;
    if (search.moves) *search.moves /= 2;
    const TurnPortfolio::Outcome result =
        TurnPortfolio{scenario, search, begin, std::move(starts)}.run();
    found.moves += result.moves;
    found.accepted += result.accepted;
    if (result.best.makespan < best.makespan) best = result.best;
  }
  found.started_from = best.schedule.name;
  found.makespan = best.makespan;
  found.schedule = std::move(best.schedule);
  return named(std::move(found));
}

}  // namespace longhaul::planner
