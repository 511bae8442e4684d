#include "planner/wan_sharing/shared_best.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "planner/wan_sharing/turn_portfolio.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/share_wan.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul {
namespace {

constexpr std::string_view kName = "atlas+best";
/// Of the time, or of the moves: for each of the two searches over rows alone.
constexpr int kPartsForRows = 4;

SearchOptions part_of(const SearchOptions& options) {
  SearchOptions part = options;
  part.time /= kPartsForRows;
  if (part.moves) *part.moves /= kPartsForRows;
  return part;
}

/// Every B as a D with its W behind it, so that the gradient leaves after the D; the turns stay.
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
  SharedCandidates(const Scenario& scenario, const SearchOptions& options)
      : scenario_{scenario}, options_{options} {}

  void add_generated() {
    const Scenario pooled = pooled_links(scenario_);
    for (const Generator& generator : generators()) {
      const auto& wanted = options_.placements;
      if (!wanted.empty() && std::ranges::find(wanted, generator.placement) == wanted.end())
        continue;
      try {
        Schedule schedule = generate(generator.name, scenario_);
        if (schedule.cell > 1) {
          add_with_parted(schedule);
        } else {
          add_shared(generate(generator.name, pooled));
        }
      } catch (const Error& error) {
        reject(std::string{generator.name}, error.what());
      }
    }
  }

  void add_found(const SearchResult& found, const std::string& name) {
    Schedule schedule = found.schedule;
    schedule.name = name;
    try {
      add_shared(schedule);
    } catch (const Error& error) {
      reject(name, error.what());
    }
  }

  /// Throws Error where it cannot run or does not fit.
  Duration add(const Schedule& schedule) {
    if (const auto violation = first_violation(schedule, scenario_)) throw Error{violation->text};
    return candidates_.fitting.emplace_back(Candidate{schedule, makespan_of(schedule, scenario_)})
        .makespan;
  }

  [[nodiscard]] Candidates take() {
    std::ranges::stable_sort(candidates_.fitting, {}, &Candidate::makespan);
    return std::move(candidates_);
  }

private:
  void add_shared(const Schedule& schedule) {
    if (const auto violation = first_violation(schedule, scenario_)) throw Error{violation->text};
    add_with_parted(share_wan(schedule, scenario_));
  }
  /// With D and W apart as well where that ends earlier: the search moves blocks, but parts none.
  void add_with_parted(const Schedule& schedule) {
    const Duration whole = add(schedule);
    const Schedule apart = parted(schedule);
    if (apart.rows == schedule.rows || first_violation(apart, scenario_)) return;
    const Duration makespan = makespan_of(apart, scenario_);
    if (makespan < whole) candidates_.fitting.push_back({apart, makespan});
  }
  void reject(const std::string& name, const char* why) {
    candidates_.rejected.push_back({name, why});
  }

  const Scenario& scenario_;
  const SearchOptions& options_;
  Candidates candidates_;
};

/// Of every layout among the candidates, in cells and not.
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

SearchResult find_shared_best(const Scenario& scenario, const SearchOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  if (options.arrangement != Arrangement::decoupled)
    fail("{} needs decoupled communication (relays go on while a block waits). Leave --comm out.",
         kName);
  if (!shares_wan(scenario)) {
    SearchResult found = find_best(scenario, options);
    found.schedule.name = kName;
    return found;
  }
  const SearchResult own = find_best(scenario, part_of(options));
  const SearchResult pooled = find_best(pooled_links(scenario), part_of(options));
  SharedCandidates candidates{scenario, options};
  candidates.add_generated();
  candidates.add_found(own, "best");
  candidates.add_found(pooled, "best of pooled links");
  candidates.add(own.schedule);

  SearchResult found;
  found.candidates = candidates.take();
  found.bound = bound_of(found.candidates, scenario);
  found.moves = own.moves + pooled.moves;
  found.accepted = own.accepted + pooled.accepted;
  Candidate best = found.candidates.fitting.front();
  std::vector<Candidate> starts = found.candidates.fitting;
  std::erase_if(starts, [](const Candidate& start) { return start.schedule.cell == 1; });
  if (!starts.empty()) {
    SearchOptions search = options;
    if (search.moves) *search.moves /= 2;
    const TurnPortfolio::Result result =
        TurnPortfolio{scenario, search, begin, std::move(starts)}.run();
    found.moves += result.moves;
    found.accepted += result.accepted;
    if (result.best.makespan < best.makespan) best = result.best;
  }
  found.started_from = best.schedule.name;
  found.makespan = best.makespan;
  found.schedule = std::move(best.schedule);
  found.schedule.name = kName;
  return found;
}

}  // namespace longhaul
