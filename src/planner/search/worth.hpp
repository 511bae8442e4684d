#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "planner/search/best.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// What a second under a schedule is worth where training is not all: prompts that its bubbles
/// answer are paid for, too.
struct Worth {
  double per_second = 0;               ///< $
  Duration wait{};                     ///< of a prompt, the mean
  Duration period{};                   ///< of an iteration
  std::int64_t tokens = 0;             ///< of prompts that were answered; for reports
  std::optional<Duration> ttft_p99{};  ///< likewise; nullopt: none was answered
  std::int64_t iterations = 0;         ///< in which they were answered; for reports

  /// Worth more; of equal worth with less of a wait.
  [[nodiscard]] bool is_better_than(const Worth& other) const {
    return per_second != other.per_second ? per_second > other.per_second : wait < other.wait;
  }
};

/// What a schedule is worth where an iteration of the fastest one takes `fastest`; nullopt: it
/// cannot run. Always the same of the same schedule. Asked by several threads at once.
using WorthOf = std::function<std::optional<Worth>(const Schedule&, Duration fastest)>;

struct WorthCandidate {
  Schedule schedule;
  Worth worth;
};

/// The result of `best` by worth, and what it had to choose from.
struct WorthResult {
  Schedule schedule;  ///< named "best"; within the budget; replicas may have rows of their own
  Worth worth;
  std::string started_from;                ///< the candidate that it came from
  std::vector<WorthCandidate> candidates;  ///< in the order of the registry, then "fastest"
  std::int64_t moves = 0;                  ///< tried by the search
  std::int64_t judged = 0;                 ///< orders whose worth was asked for
};

/// The schedule that is worth most: of everything that find_best() chooses from, its result
/// ("fastest"), those that share the WAN in cells, the orders that a search by worth finds from the
/// best of these, and of replicas with orders of their own (stagger()). Never worth less than any
/// of them; `fastest` of `worth_of` is the least period of them. `options.time` or `options.moves`
/// are spent twice: on the fastest, and on the worth. Refused as try_find_best() is, and for
/// replicas that differ.
Result<WorthResult> try_find_worthiest(const Scenario& scenario, const SearchOptions& options,
                                       const WorthOf& worth_of);

}  // namespace longhaul::planner
