#include <cmath>

#include <fmt/ranges.h>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "harness/collectives/level_fit.hpp"

namespace longhaul::harness {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

std::string nanoseconds(double ns) { return fmt::format("\"{}ns\"", std::llround(ns)); }

/// A rate of so many nanoseconds for a byte.
std::string rate_of(double ns_per_byte) {
  return ns_per_byte > 0 ? fmt::format("\"{:.6g}Mbps\"", 8e3 / ns_per_byte) : "\"unlimited\"";
}

std::vector<std::int64_t> counts_of(const std::vector<Bytes>& sizes) {
  std::vector<std::int64_t> counts;
  for (const Bytes size : sizes) counts.push_back(size.count());
  return counts;
}

std::string text_of(const LevelFit& fit) {
  return fmt::format(
      "\n[[level]]\nlevel = \"{}\"\nkind = \"{}\"\nalgorithm = \"ring\"\nmembers = {}\n"
      "latency = {}\nlatency_interval = [{}, {}]\nrate = {}\nrate_interval = [{}, {}]\n"
      "fitted_bytes = [{}]\nleft_out_bytes = [{}]\nerror = {:.4f}\n",
      to_string(fit.level), to_text(fit.kind), fit.members, nanoseconds(fit.latency_ns.value),
      nanoseconds(fit.latency_ns.low), nanoseconds(fit.latency_ns.high),
      rate_of(fit.ns_per_byte.value), rate_of(fit.ns_per_byte.high), rate_of(fit.ns_per_byte.low),
      fmt::join(counts_of(fit.fitted), ", "), fmt::join(counts_of(fit.left_out), ", "), fit.error);
}

std::string interval_text(const Fitted& time) {
  const auto text = [](double ns) { return to_text(Duration{std::llround(ns)}); };
  return fmt::format("{} - {}", text(time.low), text(time.high));
}

std::string gigabytes(double ns_per_byte) {
  return ns_per_byte > 0 ? fmt::format("{:.4g}", 1 / ns_per_byte) : "unlimited";
}

}  // namespace

std::string level_table(const std::vector<LevelFit>& fits) {
  Table table{{{"level", Align::left},
               {"kind", Align::left},
               {"ranks"},
               {"latency"},
               {"95% interval"},
               {"rate GB/s"},
               {"95% interval"},
               {"sizes"},
               {"left out"},
               {"largest error %"}}};
  for (const LevelFit& fit : fits)
    table.add_row(
        {to_string(fit.level), to_text(fit.kind), std::to_string(fit.members),
         to_text(Duration{std::llround(fit.latency_ns.value)}), interval_text(fit.latency_ns),
         gigabytes(fit.ns_per_byte.value),
         fmt::format("{} - {}", gigabytes(fit.ns_per_byte.high), gigabytes(fit.ns_per_byte.low)),
         std::to_string(fit.fitted.size()), std::to_string(fit.left_out.size()),
         fmt::format("{:.2f}", 100 * fit.error)});
  return table.text();
}

std::string levels_text(const std::vector<LevelFit>& fits, const Scenario& scenario,
                        const LevelsOrigin& origin) {
  int ranks_of_node = 1;
  for (const NodeInterfaces& node : scenario.nodes)
    ranks_of_node = std::max(ranks_of_node, node.gpus);
  std::vector<std::string> names;
  for (const Datacenter& datacenter : scenario.datacenters)
    names.push_back(quoted(datacenter.name));
  std::string text = fmt::format(
      "# Latency and rate of each level of a cluster's network, as bench_collectives fitted them.\n"
      "# A scenario includes it with [network] file = \"levels.toml\".\n\n"
      "[cluster]\nranks_of_node = {}\ndatacenters = [{}]\n",
      ranks_of_node, fmt::join(names, ", "));
  for (const LevelFit& fit : fits) text += text_of(fit);
  text += fmt::format("\n[measured]\nemulation = {}\nwhen = {}\ncommand = {}\ncommit = {}\n",
                      quoted(origin.emulation), quoted(origin.when), quoted(origin.command),
                      quoted(origin.commit));
  return text;
}

}  // namespace longhaul::harness
