// What one system's own planner answers on a drawn scenario, held against all ideas together. By
// time on orders, sites and layouts: advice_test, site_advice_test, layout_advice_test; with
// prompts: tests/cli/advise/never_worth_less_test.cpp.
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "planner/advice/advice.hpp"
#include "planner/advice/advice_by_moves.hpp"
#include "planner/advice/methods.hpp"
#include "planner/overlap/evaluate_overlap.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/registry.hpp"

namespace longhaul::planner {
namespace {

/// Two operators a stage on 2 or 4 replicas of one or two sites; every number drawn.
Scenario drawn_operators(std::uint64_t seed) {
  Random random{seed};
  const auto number = [&](std::int64_t low, std::int64_t high) {
    return random.between(low, high);
  };
  const std::int64_t stages = number(1, 2), replicas = number(0, 2) == 0 ? 4 : 2,
                     sites = number(1, 2);
  const bool is_sharded = sites == 1 && number(0, 2) > 0;
  std::string text = fmt::format(
      "[scenario]\nname = \"drawn-{}\"\n[parallel]\nstages = {}\nmicrobatches = {}\n"
      "replicas = {}\n",
      seed, stages, number(1, 2), replicas);
  text +=
      is_sharded
          ? fmt::format("gradient_sync = \"zero3\"\nshard = {}\nunit = \"operator\"\n", replicas)
          : fmt::format("gradient_sync = \"all-reduce\"\nbucket = \"{}MB\"\n", number(1, 4));
  text += fmt::format("[costs]\nmessage = \"{}MB\"\n", number(1, 4));
  for (const char* name : {"first", "second"})
    text += fmt::format(
        "[[operator]]\nname = \"{}\"\nkind = \"matmul\"\nweights = \"{}MB\"\nforward = \"{}us\"\n"
        "dgrad = \"{}us\"\nwgrad = \"{}us\"\n",
        name, number(1, 4), number(500, 3000), number(500, 3000), number(500, 3000));
  for (std::int64_t site = 0; site < sites; ++site)
    text += fmt::format(
        "[[datacenter]]\nname = \"{0}\"\nreplicas = \"{1}-{2}\"\n[[node]]\ndatacenter = \"{0}\"\n"
        "gpus = 2\ndevice = \"{3}MB/s\"\n",
        site == 0 ? "west" : "east", site * replicas / sites, (site + 1) * replicas / sites - 1,
        number(3, 20) * 100);
  if (sites == 2)
    text += fmt::format("[[link]]\nbetween = \"all\"\nlatency = \"{}us\"\nbandwidth = \"{}MB/s\"\n",
                        number(0, 3000), number(1, 20) * 100);
  return scenario::parse_scenario(text, "drawn.toml");
}

/// The static schedules that fit.
std::vector<Schedule> static_schedules(const Scenario& scenario) {
  std::vector<Schedule> all;
  for (Candidate& each : find_candidates(scenario, Arrangement::decoupled).fitting) {
    const schedule::Generator* const from = schedule::find_generator(each.schedule.name);
    if (from != nullptr && schedule::is_static(from->knowledge))
      all.push_back(std::move(each.schedule));
  }
  return all;
}

/// The shortest iteration of a schedule under any overlap, searched ones as far as advice searches
/// them; nothing where none fits.
std::optional<OverlapResult> best_under_an_overlap(const Schedule& schedule,
                                                   const Scenario& scenario) {
  constexpr std::size_t kEvaluations = 200;
  std::optional<OverlapResult> best;
  for (const auto& overlaps : {collective::overlaps(), collective::searched_overlaps()})
    for (const collective::Overlap& overlap : overlaps) {
      Result<OverlapResult> result =
          evaluate_overlap(overlap, schedule, scenario, Arrangement::decoupled, {},
                           [](std::size_t evaluated) { return evaluated >= kEvaluations; });
      if (result && result->fits() && (!best || result->makespan < best->makespan))
        best = *std::move(result);
    }
  return best;
}

TEST(NeverWorse, ThanAPlannerOfOverlapsByItself) {
  int gains = 0, searched = 0, better = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    const Scenario scenario = drawn_operators(seed);
    const Advice advice = advise(scenario, by_moves(20)).or_throw();
    ASSERT_TRUE(advice.baseline);
    const std::vector<Schedule> schedules = static_schedules(scenario);
    std::optional<OverlapResult> alone;
    for (const std::size_t which : {seed % schedules.size(), (seed + 1) % schedules.size()}) {
      const auto found = best_under_an_overlap(schedules[which], scenario);
      if (!found) continue;
      EXPECT_LE(advice.best().makespan, found->makespan) << found->schedule << found->overlap;
      if (!alone || found->makespan < alone->makespan) alone = found;
    }
    ASSERT_TRUE(alone);
    gains += alone->makespan.count() < *advice.baseline ? 1 : 0;
    searched += alone->certificate ? 1 : 0;
    better += advice.best().makespan < alone->makespan ? 1 : 0;
  }
  EXPECT_GT(gains, 20) << "it hides more than any schedule without an overlap";
  EXPECT_GT(searched, 20) << "by its own search";
  EXPECT_GT(better, 10) << "other ideas are of use";
}

/// Its runs reach a loss of 1 after so many updates.
FamilyMember member_of(const std::string& method, double wan_bytes, std::int64_t updates,
                       int staleness = 0, int local_steps = 1) {
  const int reached = static_cast<int>(updates);
  return {.method = method,
          .exchange = SetExchange::sites,
          .serve = Serve::deadline,
          .staleness = staleness,
          .local_steps = local_steps,
          .wan_bytes = wan_bytes,
          .curves = {{1, {{reached, 1.0}}}, {2, {{reached, 1.0}}}}};
}

/// One or two stages in two sites, from a link that carries nothing in time to one that is not
/// noticed.
Scenario drawn_replicas(Random& random) {
  Scenario scenario = uniform_scenario(static_cast<int>(random.between(1, 2)),
                                       static_cast<int>(random.between(1, 4)));
  const int stages = scenario.parallel.stages;
  scenario.parallel.replicas = 2 * static_cast<int>(random.between(1, 2));
  scenario.parallel.gradient_sync = GradientSync::all_reduce;
  scenario.datacenters.assign(2, {});
  scenario.datacenters[0].name = "west";
  scenario.datacenters[1].name = "east";
  scenario.placement.clear();
  for (int rank = 0; rank < scenario.ranks(); ++rank)
    scenario.placement.push_back(DatacenterId{2 * rank / scenario.ranks()});
  for (const int from : {0, 1}) {
    Link link;
    link.from = DatacenterId{from};
    link.to = DatacenterId{1 - from};
    link.latency = std::chrono::milliseconds{random.between(0, 20)};
    link.bandwidth = Bandwidth{1e6 * std::pow(10.0, static_cast<double>(random.between(0, 5)))};
    scenario.links.push_back(link);
  }
  for (auto* times : {&scenario.costs.forward, &scenario.costs.dgrad, &scenario.costs.wgrad})
    for (Duration& time : *times) time = std::chrono::milliseconds{random.between(5, 20)};
  for (int i = 0; i < stages; ++i) {
    const std::size_t stage = to_size(i);
    scenario.costs.backward[stage] = scenario.costs.dgrad[stage] + scenario.costs.wgrad[stage];
    scenario.costs.weights[stage] = Bytes{random.between(1, 8) * 1'000'000};
  }
  return scenario;
}

TrainingMethods drawn_methods(Random& random) {
  const auto updates = [&](std::int64_t most) { return random.between(90, most); };
  return allowed_methods(
      {member_of("none", 1000, 100), member_of("int8", 250, updates(130)),
       member_of("none:late", 1000, updates(120), 1), member_of("stella:16", 60, updates(200), 1),
       member_of("diloco:10", 1000, updates(250), 0, 10),
       member_of("diloco:40", 1000, updates(500), 0, 40)},
      random.between(0, 2) == 0 ? TrainingChange::stale : TrainingChange::lossy, 1);
}

/// The time to the loss of the method that takes least with a schedule, and which one it is.
std::optional<std::pair<Score, std::size_t>> best_method(const Schedule& schedule,
                                                         const Scenario& scenario,
                                                         const TrainingMethods& methods) {
  const Result<BesideMethods> beside = beside_methods(schedule, scenario, methods);
  if (!beside) return std::nullopt;
  std::optional<std::pair<Score, std::size_t>> best;
  for (std::size_t method = 0; method < methods.others.size(); ++method) {
    const auto play = play_method(schedule, scenario, methods, method, *beside);
    if (!play) continue;
    const double updates = *play->forecast.updates.median;
    const Score score = std::llround(static_cast<double>(play->update.count()) * updates);
    if (!best || score < best->first) best = {score, method};
  }
  return best;
}

TEST(NeverWorse, ThanTheBestMethodOfAnyStaticSchedule) {
  std::set<std::string> chosen;
  int gains = 0, with_method = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const Scenario scenario = drawn_replicas(random);
    AdviceOptions options = by_moves(20);
    options.methods = drawn_methods(random);
    const Advice advice = advise(scenario, options).or_throw();
    std::optional<std::pair<Score, std::size_t>> alone;
    for (const Schedule& schedule : static_schedules(scenario)) {
      const auto found = best_method(schedule, scenario, *options.methods);
      if (found && (!alone || found->first < alone->first)) alone = found;
    }
    ASSERT_TRUE(alone);
    EXPECT_LE(advice.best().score, alone->first);
    const FamilyMember& method = options.methods->others[alone->second];
    chosen.insert(method.method);
    with_method += has(advice.best().ideas, Idea::method) ? 1 : 0;
    if (change_of(method) == TrainingChange::exact) continue;
    ++gains;  // and exact sums are sooner in the stream of `stella` alone, if at all
    EXPECT_TRUE(has(advice.best().ideas, Idea::method) || advice.best().schedule.name == "stella");
  }
  EXPECT_GT(gains, 20) << "it reaches the loss before exact sums do";
  EXPECT_GT(with_method, 20);
  EXPECT_GT(chosen.size(), 4U);
}

}  // namespace
}  // namespace longhaul::planner
