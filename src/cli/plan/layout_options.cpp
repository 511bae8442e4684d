#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "cli/plan/layout_plan.hpp"

namespace longhaul::cli {
namespace {

using planner::LayoutOrder;
using planner::LayoutProblem;
using planner::LayoutSpace;

constexpr int kMostOfOne = 1 << 20;
constexpr double kMostLayouts = 5e6;
constexpr int kUsualReplicas = 32;  ///< where no number of GPUs limits them

std::vector<std::pair<const char*, const std::string LayoutArguments::*>> space_keys() {
  return {{"gpus", &LayoutArguments::gpus},
          {"tensor", &LayoutArguments::tensor},
          {"data", &LayoutArguments::data},
          {"pipeline", &LayoutArguments::pipeline},
          {"micro_batch", &LayoutArguments::micro_batch},
          {"chunks", &LayoutArguments::chunks},
          {"recompute", &LayoutArguments::recompute},
          {"sharding", &LayoutArguments::sharding},
          {"machine", &LayoutArguments::machine},
          {"calibration", &LayoutArguments::calibration},
          {"memory", &LayoutArguments::memory}};
}

template <ListedEnum Enum>
std::vector<Enum> choices(const char* option, const std::string& text) {
  std::vector<Enum> values;
  for (const std::string& word : longhaul::words_of(text, ',')) {
    const Enum value = choice<Enum>(option, word);
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  std::ranges::sort(values);
  return values;
}

/// Those that no one needs to look for.
std::string usual_orders() {
  std::vector<std::string_view> names;
  for (const LayoutOrder order : every<LayoutOrder>())
    if (!knows_links(order)) names.push_back(to_string(order));
  return fmt::format("{}", fmt::join(names, ","));
}

std::string listed(const std::vector<int>& counts) {
  return fmt::format("{}", fmt::join(counts, ","));
}

std::vector<int> usual_replicas(const LayoutProblem& problem, const std::string& gpus) {
  int most = kUsualReplicas;
  if (!gpus.empty()) most = planner::read_counts("--gpus", gpus, kMostOfOne).back();
  std::vector<int> counts = planner::divisors(problem.model.global_batch);
  std::erase_if(counts, [&](int count) { return count > most; });
  return counts;
}

}  // namespace

void add_space_options(Arguments& command, LayoutArguments& arguments) {
  command.option("--tensor", arguments.tensor, "t, so too (default: 1,2,4,8,16)");
  command.option("--data", arguments.data,
                 "d (default: divisors of the global batch up to 32, with --gpus all)");
  command.option("--pipeline", arguments.pipeline, "p (default: divisors of the layers)");
  command.option("--micro-batch", arguments.micro_batch, "sequences (default: 1,2,4,8,16)");
  command.option("--chunks", arguments.chunks, "of interleaved-1f1b (default: 2)");
  command.option("--recompute", arguments.recompute,
                 "comma list of none, full and selective (default: all)");
  command.option("--sharding", arguments.sharding,
                 "comma list of none, zero1 and zero2 (default: none,zero1)");
  command.option("--machine", arguments.machine,
                 "of `longhaul predict` (default: selene, H100 by the model's peak rate)");
  command.option("--calibration", arguments.calibration,
                 "what `longhaul profile fit` wrote; none (default)");
  command.option("--memory", arguments.memory,
                 "of a GPU, as 40GB; any: layouts need not fit (default: the machine's)");
  command
      .flag("--extrapolate", arguments.extrapolate,
            "take products more than 4 times larger or smaller than measured ones, too")
      .takes_no_value();
}

void add_run_options(Arguments& command, LayoutArguments& arguments) {
  command.option("--gpus", arguments.gpus,
                 "numbers of GPUs that layouts may have: a list, LOW:HIGH, or both (default: any)");
  command.option("--price", arguments.price,
                 "$ for a GPU and hour, in all datacenters (default: theirs, or 5)");
  command.option("--deadline", arguments.deadline, "plans that take longer are none: 30d, 12h");
  command.option("--tokens", arguments.tokens, "of the whole training: 270e9");
  command.option("--iterations", arguments.iterations, "of the whole training, instead of tokens");
  command
      .flag("--exhaustive", arguments.exhaustive,
            "evaluate every layout that fits: the same plans, without bounds")
      .takes_no_value();
  command.option("--keep", arguments.keep,
                 "front (default): plans that no other beats in time and cost; all: every plan "
                 "that was evaluated");
  command.option("--emit", arguments.emit,
                 "new directory: a scenario of each plan, for simulate and bench_pipeline");
}

void require_no_layout_options(const LayoutArguments& typed) {
  const std::pair<const char*, bool> given[] = {{"--gpus", !typed.gpus.empty()},
                                                {"--tensor", !typed.tensor.empty()},
                                                {"--data", !typed.data.empty()},
                                                {"--pipeline", !typed.pipeline.empty()},
                                                {"--micro-batch", !typed.micro_batch.empty()},
                                                {"--chunks", !typed.chunks.empty()},
                                                {"--recompute", !typed.recompute.empty()},
                                                {"--sharding", !typed.sharding.empty()},
                                                {"--machine", !typed.machine.empty()},
                                                {"--calibration", !typed.calibration.empty()},
                                                {"--memory", !typed.memory.empty()},
                                                {"--price", !typed.price.empty()},
                                                {"--deadline", !typed.deadline.empty()},
                                                {"--tokens", !typed.tokens.empty()},
                                                {"--iterations", !typed.iterations.empty()},
                                                {"--emit", !typed.emit.empty()},
                                                {"--keep", !typed.keep.empty()},
                                                {"--exhaustive", typed.exhaustive},
                                                {"--extrapolate", typed.extrapolate}};
  for (const auto& [option, is_given] : given)
    if (is_given)
      fail("{}: it has no effect here (it goes with --search parallel). Leave it out, or add that.",
           option);
}

LayoutTexts::LayoutTexts(const LayoutArguments& typed, const std::string& schedule,
                         const Stored& stored)
    : texts_{stored} {
  for (const auto& [key, member] : space_keys())
    if (!(typed.*member).empty()) texts_[key] = typed.*member;
  if (!schedule.empty()) texts_["schedule"] = schedule;
}

std::string LayoutTexts::get(const std::string& key, std::string usual) const {
  const auto found = texts_.find(key);
  return found == texts_.end() || found->second.empty() ? std::move(usual) : found->second;
}

profile::Calibration layout_calibration(const std::string& option) {
  if (option.empty() || option == "none") return {};
  return profile::read_calibration(read_text_file(option), option);
}

void set_limits(const LayoutTexts& texts, const LayoutArguments& typed, LayoutProblem& problem) {
  if (typed.extrapolate) problem.extrapolation = profile::Extrapolation::allowed;
  const std::string memory = texts.get("memory", "");
  if (memory.empty()) return;
  if (memory == "any") {
    problem.memory = std::nullopt;
    return;
  }
  try {
    problem.memory = parse_bytes(memory);
  } catch (const Error& error) {
    fail("--memory: {}", error.what());
  }
  if (*problem.memory < Bytes{1})
    fail("--memory: {} holds nothing (a GPU has at least 1 B). Give its memory, as 40GB.", memory);
}

LayoutSpace layout_space(const LayoutTexts& texts, const LayoutProblem& problem) {
  const auto counts = [&](const char* option, const char* key, const std::string& usual) {
    return planner::read_counts(option, texts.get(key, usual), kMostOfOne);
  };
  const std::string gpus = texts.get("gpus", "");
  LayoutSpace space;
  space.tensor = counts("--tensor", "tensor", "1,2,4,8,16");
  space.data = counts("--data", "data", listed(usual_replicas(problem, gpus)));
  space.pipeline =
      counts("--pipeline", "pipeline", listed(planner::divisors(problem.model.layers)));
  space.micro_batch = counts("--micro-batch", "micro_batch", "1,2,4,8,16");
  space.chunks = counts("--chunks", "chunks", "2");
  space.orders = choices<LayoutOrder>("--schedule", texts.get("schedule", usual_orders()));
  space.recompute =
      choices<RecomputeKind>("--recompute", texts.get("recompute", "none,full,selective"));
  space.sharding =
      choices<profile::ShardingKind>("--sharding", texts.get("sharding", "none,zero1"));
  if (!gpus.empty()) {
    const std::vector<int> known = planner::read_counts("--gpus", gpus, kMostOfOne);
    space.has_gpus = [known](std::int64_t count) {
      return std::ranges::binary_search(known, count);
    };
  }
  return space;
}

void require_few_points(const LayoutProblem& problem, const LayoutSpace& space) {
  double orders = 0;
  for (const LayoutOrder order : space.orders)
    orders += order == LayoutOrder::interleaved ? static_cast<double>(space.chunks.size()) : 1;
  double points = orders;
  for (const std::size_t count :
       {space.tensor.size(), space.data.size(), space.pipeline.size(), space.micro_batch.size(),
        space.recompute.size(), space.sharding.size(), problem.placings.size()})
    points *= static_cast<double>(count);
  if (points > kMostLayouts)
    fail(
        "the space has {:.0f} points ({:.0f} are the limit). Narrow --tensor, --data, --pipeline "
        "or --micro-batch.",
        points, kMostLayouts);
}

double positive_number(const char* option, const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stopped != end || !(value > 0) || !(value < 1e30))
    fail("{}: \"{}\" is no number above 0. Give one, as in 270e9.", option, text);
  return value;
}

double days_of(const char* option, const std::string& text) {
  if (text.ends_with('d')) return positive_number(option, text.substr(0, text.size() - 1));
  try {
    return std::chrono::duration<double>(parse_duration(text)).count() / 86400;
  } catch (const Error& error) {
    fail("{}: {} (or days: 30d).", option, error.what());
  }
}

}  // namespace longhaul::cli
