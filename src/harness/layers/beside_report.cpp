#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/statistics/sample.hpp"
#include "base/table.hpp"
#include "harness/environment/facts.hpp"
#include "harness/layers/beside.hpp"
#include "report/record_file.hpp"

namespace longhaul::harness {
namespace {

double tail_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return quantile(seconds, 0.99) / quantile(seconds, 0.5);
}

/// nullopt where no pass ended during the layer's rounds: it got nothing of the device.
std::optional<double> side_slowdown(const SideWork& side) {
  if (side.during.empty() || side.alone.empty()) return std::nullopt;
  return summarize(side.during).median / summarize(side.alone).median;
}

std::string factor(std::optional<double> value) {
  return value ? fmt::format("{:.3f}", *value) : std::string{};
}

std::string milliseconds(const std::vector<double>& seconds) {
  return seconds.empty() ? std::string{}
                         : fmt::format("{:.4g} ms", 1e3 * summarize(seconds).median);
}

std::string text_of_layers(const BesideReport& report) {
  Table table{{{"a layer", Align::left},
               {"n"},
               {"F"},
               {"B"},
               {"D"},
               {"W"},
               {"F+B"},
               {"p99/p50"},
               {"slower: F"},
               {"B"},
               {"F+B"}}};
  for (const BesideCase& one : report.cases) {
    const LayerPart& both = one.part("F+B");
    std::vector<std::string> row{one.name, std::to_string(both.seconds.size())};
    for (const char* part : {"F", "B", "D", "W", "F+B"})
      row.push_back(milliseconds(one.part(part).seconds));
    row.push_back(fmt::format("{:.3f}", tail_of(both.seconds)));
    for (const char* part : {"F", "B", "F+B"}) row.push_back(factor(report.slowdown(one, part)));
    table.add_row(row);
  }
  return table.text();
}

std::string text_of_sides(const BesideReport& report) {
  Table table{{{"beside it", Align::left},
               {"n"},
               {"alone"},
               {"p99/p50"},
               {"during"},
               {"p99/p50"},
               {"slower"},
               {"GB/s alone"},
               {"during"}}};
  for (const BesideCase& one : report.cases) {
    if (!one.side) continue;
    const SideWork& side = *one.side;
    const auto rate = [&](const std::vector<double>& seconds) {
      return side.bytes > 0 && !seconds.empty()
                 ? fmt::format("{:.4g}", side.bytes / summarize(seconds).median / 1e9)
                 : std::string{};
    };
    const auto tail = [](const std::vector<double>& seconds) {
      return seconds.empty() ? std::string{} : fmt::format("{:.3f}", tail_of(seconds));
    };
    table.add_row({one.name, std::to_string(side.during.size()), milliseconds(side.alone),
                   tail(side.alone), milliseconds(side.during), tail(side.during),
                   factor(side_slowdown(side)), rate(side.alone), rate(side.during)});
  }
  return table.text();
}

nlohmann::ordered_json json_of_sample(const std::vector<double>& seconds) {
  if (seconds.empty()) return {{"n", 0}, {"median_s", nullptr}, {"p99_over_p50", nullptr}};
  const SampleSummary times = summarize(seconds);
  return {{"n", times.n},
          {"min_s", times.min},
          {"median_s", times.median},
          {"p99_over_p50", tail_of(seconds)}};
}

nlohmann::ordered_json json_of_number(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json json_of_case(const BesideReport& report, const BesideCase& one) {
  nlohmann::ordered_json json{{"name", one.name}};
  json["against"] =
      one.against.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(one.against);
  for (const LayerPart& part : one.parts) {
    nlohmann::ordered_json entry = json_of_sample(part.seconds);
    entry["slowdown"] = json_of_number(report.slowdown(one, part.name));
    entry["samples_s"] = part.seconds;
    json["parts"][part.name] = std::move(entry);
  }
  json["side"] = nullptr;
  if (one.side)
    json["side"] = {{"name", one.side->name},
                    {"bytes", one.side->bytes},
                    {"alone", json_of_sample(one.side->alone)},
                    {"during", json_of_sample(one.side->during)},
                    {"slowdown", json_of_number(side_slowdown(*one.side))}};
  return json;
}

}  // namespace

const LayerPart& BesideCase::part(const std::string& called) const {
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const LayerPart& one) { return one.name == called; });
  LONGHAUL_ASSERT(found != parts.end(), "case '{}' has no part {}", name, called);
  return *found;
}

const BesideCase* BesideReport::find(const std::string& name) const {
  const auto found = std::find_if(cases.begin(), cases.end(),
                                  [&](const BesideCase& one) { return one.name == name; });
  return found == cases.end() ? nullptr : &*found;
}

std::optional<double> BesideReport::slowdown(const BesideCase& of, const std::string& part) const {
  const BesideCase* const base = find(of.against);
  if (base == nullptr) return std::nullopt;
  return summarize(of.part(part).seconds).median / summarize(base->part(part).seconds).median;
}

std::optional<std::string> overlap_section(const BesideReport& report) {
  const BesideCase *const sum = report.find(kBesideSum), *const host = report.find(kBesideHost);
  if (sum == nullptr || host == nullptr) return std::nullopt;
  const auto level = [&](const BesideCase& one) {
    return std::max(1.0, std::round(1e3 * report.slowdown(one, "F+B").value()) / 1e3);
  };
  return fmt::format("[overlap]\nslowdown = {{node = {:.3f}, datacenter = {:.3f}, wan = {:.3f}}}\n",
                     level(*sum), level(*host), level(*host));
}

std::string beside_table(const BesideReport& report) {
  std::string text = text_of_layers(report) + "\n" + text_of_sides(report);
  if (const auto section = overlap_section(report))
    text += fmt::format(
        "\nFor a scenario (node: beside the sum, others: beside copies from the host):\n{}",
        *section);
  return text;
}

nlohmann::ordered_json beside_record(const BesideReport& report, const std::string& command_line) {
  nlohmann::ordered_json record = report::record_header(
      {.benchmark = "bench_layers", .numbers = "measured", .command_line = command_line});
  record["check"] = "ok";  // what is wrong ends the run
  record["environment"] = local_environment(command_line);
  record["device"] = {{"name", report.device}, {"notes", report.notes}};
  record["shape"] = json_of_shape(report.options.shape);
  record["prompt_tokens"] = report.options.prompt;
  for (const BesideCase& one : report.cases) record["beside"].push_back(json_of_case(report, one));
  const auto section = overlap_section(report);
  record["overlap_toml"] =
      section ? nlohmann::ordered_json(*section) : nlohmann::ordered_json(nullptr);
  return record;
}

}  // namespace longhaul::harness
