#include <charconv>
#include <limits>

#include "base/error.hpp"
#include "base/program/arguments.hpp"
#include "base/suggest.hpp"
#include "base/unit_text.hpp"
#include "report/planning.hpp"

namespace longhaul::report {
namespace {

constexpr int kMostSearchThreads = 4096;

/// The value as `read` parses it; its Error names the option.
template <typename Read>
auto value_of(const char* option, const std::string& text, Read&& read) {
  try {
    return read(text);
  } catch (const Error& error) {
    throw Error{fmt::format("{}: {}", option, error.what()), error.code()};
  }
}

std::int64_t whole_number_64(const char* option, const std::string& text, std::int64_t least,
                             std::int64_t most) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stopped != end)
    fail("{}: \"{}\" is no whole number (64 bits). Give one from {} on.", option, text, least);
  if (value < least || value > most)
    fail("{}: {} is out of range ({} to {}). Give a number in it.", option, value, least, most);
  return value;
}

Duration time_of(const char* option, const std::string& text) {
  return value_of(option, text, [](const std::string& value) { return parse_duration(value); });
}

Duration search_time(const std::string& text) {
  const Duration time = time_of("--search-time", text);
  if (time < Duration::zero())
    fail("--search-time: {} is negative (a search takes time). Give 1s, or 0s for none.", text);
  return time;
}

Duration time_limit(const std::string& text) {
  const Duration limit = time_of("--time-limit", text);
  if (limit < std::chrono::seconds{1})
    fail("--time-limit: {} is less than a second (the solver takes longer to start). Give 60s.",
         text);
  return limit;
}

std::vector<schedule::Placement> placements(const std::string& list) {
  std::vector<schedule::Placement> placements;
  for (std::string_view rest = list;;) {
    const std::size_t comma = rest.find(',');
    placements.push_back(
        value_of("--placement", std::string{rest.substr(0, comma)},
                 [](const std::string& word) { return schedule::parse_placement(word); }));
    if (comma == std::string_view::npos) return placements;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace

void add_planner_options(longhaul::Arguments& command, PlannerArguments& arguments) {
  command.option("--search-time", arguments.search_time, "how long best searches (default: 1s)");
  command.option("--search-moves", arguments.search_moves,
                 "let best try so many moves instead: the same result on any machine");
  command.option("--search-threads", arguments.search_threads,
                 "of the search of best (default: all cores)");
  command.option("--search-seed", arguments.search_seed, "of the search of best (default: 1)");
  command.option("--placement", arguments.placement,
                 "comma list of ud, loop, wave, bd: best keeps to these (default: any)");
  command
      .flag("--robust", arguments.robust,
            "pick best by its 95th percentile under the jitter of the links")
      .takes_no_value();
  command.option(
      "--time-limit", arguments.time_limit,
      "of the solver, for each of cross-ud-opt, cross-wave-opt, and of the search of each "
      "overlap (default: 60s)");
  command.option("--overlap-search", arguments.overlap_search,
                 "let the search of each overlap simulate at most so many iterations: where that "
                 "of another command ended, the same again (default: 3000)");
  command
      .flag("--any-microbatch-order", arguments.any_microbatch_order,
            "let the solver run blocks of a kind in another order than that of microbatches")
      .takes_no_value();
  command
      .flag("--solver-without-dp", arguments.solver_without_dp,
            "let the solver leave gathers and reductions out of the makespan that it minimises")
      .takes_no_value();
  command
      .flag("--solver-without-fusion", arguments.solver_without_fusion,
            "let the solver keep each D and its W apart, also where one B is cheaper")
      .takes_no_value();
}

Arrangement arrangement_of(std::string_view comm) {
  if (const auto arrangement = from_string<Arrangement>(comm)) return *arrangement;
  fail("--comm: unknown arrangement \"{}\". {}", comm, suggestion(comm, every_name<Arrangement>()));
}

planner::PlannerOptions planner_options_of(const PlannerArguments& arguments,
                                           Arrangement arrangement) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  planner::PlannerOptions options;
  planner::SearchOptions& search = options.search;
  search.arrangement = arrangement;
  if (!arguments.search_time.empty() && !arguments.search_moves.empty())
    fail(
        "--search-time and --search-moves are both given (one of them ends the search). Leave one "
        "out.");
  if (!arguments.search_time.empty()) search.time = search_time(arguments.search_time);
  if (!arguments.search_moves.empty())
    search.moves = whole_number_64("--search-moves", arguments.search_moves, 0, kMost);
  if (!arguments.search_threads.empty())
    search.threads = static_cast<int>(
        whole_number_64("--search-threads", arguments.search_threads, 1, kMostSearchThreads));
  if (!arguments.search_seed.empty())
    search.seed = static_cast<std::uint64_t>(
        whole_number_64("--search-seed", arguments.search_seed, 0, kMost));
  if (!arguments.placement.empty()) search.placements = placements(arguments.placement);
  options.robust = arguments.robust;
  if (!arguments.time_limit.empty()) options.solver.time_limit = time_limit(arguments.time_limit);
  if (!arguments.overlap_search.empty())
    options.overlap_evaluations = static_cast<std::size_t>(
        whole_number_64("--overlap-search", arguments.overlap_search, 0, kMost));
  options.solver.microbatch_order = !arguments.any_microbatch_order;
  options.solver.include_dp = !arguments.solver_without_dp;
  options.solver.fuse = !arguments.solver_without_fusion;
  return options;
}

}  // namespace longhaul::report
