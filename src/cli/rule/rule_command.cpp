#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/program/option_values.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "collective/rules/layer_rule.hpp"
#include "collective/rules/model_rule.hpp"
#include "collective/rules/operation_rule.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

constexpr int kMostMembers = 1'000'000;
constexpr int kMostMicrobatches = 1'000'000;
constexpr int kMostChunks = 1'000'000;
/// Sums of some of them stay within a Duration.
constexpr Duration kLongest = std::chrono::hours{24 * 365};

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// `parse`: of a text with a unit. A number without one is in `unit`.
template <typename Value>
Value read_value(const char* option, const std::string& text, const char* unit, const char* example,
                 Value (*parse)(std::string_view)) {
  if (text.empty())
    fail("{}: nothing is given. Give a value, as in {} {}.", option, option, example);
  try {
    return parse(is_plain(text) ? text + unit : text);
  } catch (const Error& error) {
    fail("{}: {}", option, error.what());
  }
}

Duration read_cost(const char* option, const std::string& text) {
  const Duration cost = read_value(option, text, "ns", "8ms", parse_duration);
  if (cost > kLongest) fail("{}: {} is more than a year. Check its unit.", option, text);
  return cost;
}

Bytes read_size(const char* option, const std::string& text) {
  return read_value(option, text, "B", "1GiB", parse_bytes);
}

int read_count(const char* option, const std::string& text, int most) {
  if (text.empty()) fail("{}: nothing is given. Give a number, as in {} 8.", option, option);
  return whole_number(option, text, 1, most);
}

std::string text_of(const collective::Fraction& part) {
  if (part.denominator == 1) return fmt::format("{}", part.numerator);
  return fmt::format("{}/{}", part.numerator, part.denominator);
}

collective::OperationCosts operation_costs(const RuleArguments::Operation& typed) {
  collective::OperationCosts costs;
  costs.communication = read_cost("--comm", typed.comm);
  costs.independent = read_cost("--in-cost", typed.in_cost);
  if (!typed.max_chunks.empty())
    costs.most_chunks = read_count("--max-chunks", typed.max_chunks, kMostChunks);
  const auto wanted = [&](const std::string& text) { return typed.grouped || !text.empty(); };
  if (wanted(typed.comp)) costs.computation = read_cost("--comp", typed.comp);
  if (wanted(typed.inter_cost)) costs.inter = read_cost("--inter-cost", typed.inter_cost);
  if (!typed.intra_cost.empty()) costs.intra = read_cost("--intra-cost", typed.intra_cost);
  if (wanted(typed.inter_size))
    costs.inter_size = read_count("--inter-size", typed.inter_size, kMostMembers);
  if (wanted(typed.intra_size))
    costs.intra_size = read_count("--intra-size", typed.intra_size, kMostMembers);
  costs.grouped = typed.grouped;
  return costs;
}

}  // namespace

Answer rule_operation_command(const Options& options) {
  const std::vector<collective::Fraction> parts =
      collective::operation_granularity(operation_costs(options.rule.operation));
  std::vector<std::string> texts;
  std::vector<double> numbers;
  for (const collective::Fraction& part : parts) {
    texts.push_back(text_of(part));
    numbers.push_back(static_cast<double>(part.numerator) / static_cast<double>(part.denominator));
  }
  if (!options.json) return {fmt::format("granularity: {}\n", fmt::join(texts, ", "))};
  ordered_json json = report::record_header();
  json["granularity"] = numbers;
  json["fractions"] = texts;
  return {report::json_text(json)};
}

Answer rule_layer_command(const Options& options) {
  const RuleArguments::Layer& typed = options.rule.layer;
  const collective::LayerTimes times =
      collective::layer_times({.weight_gather = read_cost("--w-ag", typed.w_ag),
                               .activation_gradient = read_cost("--g-act", typed.g_act),
                               .activation_gather = read_cost("--act-ag", typed.act_ag),
                               .weight_gradient = read_cost("--g-w", typed.g_w),
                               .activation_scatter = read_cost("--act-rs", typed.act_rs),
                               .weight_gradient_scatter = read_cost("--g-w-rs", typed.g_w_rs),
                               .others = read_cost("--others", typed.others)});
  const auto& [first, second] = times;
  if (!options.json) {
    Table table{{{"first", Align::left}, {"backward of a layer"}}};
    table.add_row({"gradients of activations", to_text(first)});
    table.add_row({"gradients of weights", to_text(second)});
    return {table.text(table_width(options))};
  }
  ordered_json json = report::record_header();
  json["t1_ns"] = first.count();
  json["t2_ns"] = second.count();
  return {report::json_text(json)};
}

Answer rule_model_command(const Options& options) {
  const RuleArguments::Model& typed = options.rule.model;
  const std::optional<collective::ModelChoice> choice = collective::model_choice(
      {.gather = read_cost("--c-ag", typed.c_ag),
       .scatter = read_cost("--c-rs", typed.c_rs),
       .forward = read_cost("--c-fw", typed.c_fw),
       .backward = read_cost("--c-bw", typed.c_bw),
       .activation = read_size("--activation", typed.activation),
       .memory = read_size("--memory", typed.memory),
       .microbatches = read_count("--microbatches", typed.microbatches, kMostMicrobatches)});
  const ExitCode code = choice ? ExitCode::fine : ExitCode::answer_is_no;
  if (!options.json) {
    if (!choice)
      return {"no answer: not one microbatch each way fits the memory and the batch\n", code};
    return {fmt::format("{} forward and {} backward together; {} of communication is exposed\n",
                        choice->forward, choice->backward, to_text(choice->exposed)),
            code};
  }
  ordered_json json = report::record_header();
  json["t_ns"] = choice ? ordered_json(choice->exposed.count()) : ordered_json{};
  json["l1"] = choice ? ordered_json(choice->forward) : ordered_json{};
  json["l2"] = choice ? ordered_json(choice->backward) : ordered_json{};
  return {report::json_text(json), code};
}

}  // namespace longhaul::cli
