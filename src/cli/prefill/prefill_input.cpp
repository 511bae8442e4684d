#include <algorithm>

#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "cli/prefill/filled_schedule.hpp"
#include "scenario/reader/stored_text.hpp"

namespace longhaul::cli {
namespace {

constexpr int kMostWaiting = 1'000'000;

prefill::LoadOptions load_options(const PrefillArguments& typed) {
  prefill::LoadOptions load;
  if (!typed.window.empty()) prefill::set_window(typed.window, load);
  if (!typed.copies.empty())
    load.copies = whole_number("--copies", typed.copies, 1, prefill::kMostCopies);
  if (!typed.rate.empty()) load.rate = positive_number("--rate", typed.rate);
  if (!typed.poisson.empty()) load.poisson = positive_number("--poisson", typed.poisson);
  if (load.poisson && load.rate != 1)
    fail("--rate: it has no effect with --poisson (whose arrivals are drawn). Leave one out.");
  return load;
}

prefill::BacklogOptions backlog_options(const PrefillArguments& typed, const Scenario& scenario) {
  for (const auto& [option, value] : {std::pair{"--rate", &typed.rate},
                                      {"--copies", &typed.copies},
                                      {"--poisson", &typed.poisson}})
    if (!value->empty())
      fail("{}: it has no effect with --backlog (a queue that never empties). Leave one out.",
           option);
  if (!typed.route.empty())
    fail(
        "--route: it has no effect with --backlog (whose datacenters count nothing). Leave one "
        "out.");
  prefill::BacklogOptions backlog;
  backlog.waiting = whole_number("--backlog", typed.backlog, 1, kMostWaiting);
  backlog.iterations = scenario.run.iterations;
  if (!typed.patience.empty())
    backlog.patience = whole_number("--patience", typed.patience, 0, kMostWaiting);
  return backlog;
}

}  // namespace

std::vector<std::string> left_out_of_backlog(const Scenario& scenario, const PrefillInput& input) {
  std::vector<std::string> left_out;
  if (!input.backlog) return left_out;
  const auto some = [&](const auto& has) { return std::ranges::any_of(scenario.served, has); };
  if (some([](const ServedModel& each) { return each.decode.has_value(); })) {
    left_out.emplace_back("decode.slots");
    if (prefill::limits_memory(scenario)) left_out.emplace_back("memory of keys that leave");
  }
  if (some([](const ServedModel& each) { return each.prefix_cache > Bytes{}; }))
    left_out.emplace_back("prefix_cache");
  // What fills bubbles by length looks at no time; in strict order each is answered.
  if (prefill::fills_by_length(input.policy, scenario.served.size(),
                               scenario.served.front().stages) &&
      some([](const ServedModel& each) { return each.slo_ttft.has_value(); }))
    left_out.emplace_back("slo_ttft");
  else if (some([](const ServedModel& each) { return each.slo_ttft && each.decode; }))
    left_out.emplace_back("keys and first tokens in slo_ttft");
  return left_out;
}

PrefillInput read_prefill_input(const PrefillArguments& typed, const Scenario& scenario) {
  if (typed.requests.empty())
    fail("prefill: --requests is missing (who asks for what). Name a trace (.csv or .jsonl).");
  PrefillInput input;
  if (!typed.policy.empty())
    input.policy = choice<prefill::PlacementPolicy>("--policy", typed.policy);
  if (!typed.kv.empty()) input.sending = choice<prefill::KvSending>("--kv", typed.kv);
  if (!typed.route.empty()) input.routing = choice<prefill::Routing>("--route", typed.route);
  if (!typed.signals.empty()) input.signals = choice<prefill::Signals>("--signals", typed.signals);
  if (!typed.overrun.empty()) input.overrun = choice<prefill::Overrun>("--overrun", typed.overrun);
  if (!typed.objective.empty() && typed.objective != "value")
    fail("--objective: there is no \"{}\". {}", typed.objective,
         suggestion(typed.objective, std::vector<std::string>{"value"}));
  input.by_value = !typed.objective.empty();
  if (!typed.price.empty()) input.price = positive_number("--prefill-price", typed.price);
  if (input.price && !input.by_value)
    fail("--prefill-price: it has no effect without --objective value. Add that, or leave it out.");
  if (input.by_value && !input.price)
    fail("--objective value: --prefill-price is missing ($ of 10^6 prompt tokens). Give it.");
  if (!typed.regions.empty())
    input.regions = scenario::RegionTable::load(typed.regions);
  else if (const auto own = scenario::own_regions(scenario))
    input.regions = *own;
  else
    input.regions = scenario::RegionTable::built_in();
  if (!typed.backlog.empty()) input.backlog = backlog_options(typed, scenario);
  if (!input.backlog && !typed.patience.empty())
    fail("--patience: it has no effect without --backlog (no one is passed over). Leave it out.");
  if (input.backlog && !typed.patience.empty() &&
      input.policy == prefill::PlacementPolicy::earliest)
    fail("--patience: earliest passes no one over. Leave it out.");
  prefill::LoadOptions load = load_options(typed);
  load.seed = scenario.run.seed;
  if (typed.stream) {
    input.stream = typed.requests;
    input.offered = load;
    input.load = fmt::format("an open loop of {}", typed.requests);
    require_stream(typed, scenario, input);
    return input;
  }
  input.requests = prefill::offered_load(
      prefill::parse_requests(read_text_file(typed.requests), typed.requests), load);
  if (input.requests.empty())
    fail("--window: no request of {} arrives in it. Widen it.", typed.requests);
  input.load = input.backlog ? fmt::format("a backlog of {}, {} iterations", input.backlog->waiting,
                                           input.backlog->iterations)
                             : fmt::format("an open loop of {} requests", input.requests.size());
  return input;
}

void require_stream(const PrefillArguments& typed, const Scenario& scenario,
                    const PrefillInput& input) {
  const auto refuse = [](const char* option) {
    fail("--stream: requests are forgotten once they are answered. Leave {} out.", option);
  };
  if (input.backlog) refuse("--backlog");
  if (!typed.copies.empty()) refuse("--copies");
  if (input.signals) refuse("--signals");
  if (!typed.overrun.empty()) refuse("--overrun");
  if (input.by_value) refuse("--objective");
  if (input.policy == prefill::PlacementPolicy::careless) refuse("--policy careless");
  if (scenario.run.noise > 0) refuse("run.noise");
  if (!scenario.run.stragglers.empty()) refuse("run.stragglers");
  for (const ServedModel& model : scenario.served)
    if (model.noise > 0) refuse("prefill.noise");
}

void add_prefill_options(Arguments& command, PrefillArguments& arguments) {
  command.option("--requests", arguments.requests, "Azure's trace (.csv), or JSON lines");
  command.flag("--stream", arguments.stream,
               "requests one after the other, in constant memory, whatever the file's length");
  command.option("--policy", arguments.policy,
                 "best-fit (default); earliest: BubbleTea's; careless");
  command.option("--rate", arguments.rate, "so many times as fast as the trace");
  command.option("--copies", arguments.copies, "of the trace, laid over each other, shifted");
  command.option("--window", arguments.window, "FROM,TO: its arrivals from FROM to before TO");
  command.option("--poisson", arguments.poisson, "requests a second, instead of its arrivals");
  command.option("--backlog", arguments.backlog,
                 "so many requests always wait, the file over and over, for run.iterations");
  command.option("--patience", arguments.patience,
                 "how often best-fit passes a request of a backlog over (default 256)");
  command.option("--kv", arguments.kv,
                 "layerwise (default): keys and values leave while later layers compute; whole");
  command.option("--route", arguments.route,
                 "the datacenter of the least time to first token (ttft, default), or the nearest");
  command.option("--regions", arguments.regions,
                 "a table (.csv) of round trips between regions, instead of the scenario's");
  command.option(
      "--signals", arguments.signals,
      "what ranks go by where times differ from the plan: plan, signals, both (default)");
  command.option(
      "--overrun", arguments.overrun,
      "of a prefill that a block waits for: finish (default), or kill at the next layer");
  command.option("--objective", arguments.objective,
                 "value: the schedule whose iterations and prompts are worth most; --schedule best "
                 "searches by it");
  command.option("--prefill-price", arguments.price, "$ of 10^6 prompt tokens");
  command.option("--placements-out", arguments.placements_out, "a file (.csv) of all answers");
  command.option("--schedule-out", arguments.schedule_out,
                 "a file (.csv) of the schedule, for --schedule");
}

}  // namespace longhaul::cli
