#include <algorithm>

#include "base/unit_text.hpp"
#include "scenario/files/link_trace.hpp"
#include "scenario/reader/link_values.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::size_t kMostOutages = 100'000;

void read_trace(const Section& section, TraceStore& traces, const Scenario& scenario,
                bool message_known, Link& link) {
  const auto field = section.find("trace");
  const auto repeat = section.find("trace_repeat");
  if (repeat && !field)
    fail_at(repeat->node->place,
            "{} has no effect (the link has no trace). Add trace, or remove "
            "it.",
            repeat->path);
  if (!field) return;
  link.weather.trace = traces.find(*field);
  const LinkTrace& trace = *link.weather.trace;
  if (trace.gives_bandwidth) refuse_rate_without_size(*field, scenario, message_known);
  const auto gives = [&](std::initializer_list<const char*> keys) {
    return std::ranges::any_of(keys,
                               [&](const char* key) { return section.find(key).has_value(); });
  };
  if (trace.gives_latency && !gives({"latency", "rtt", "latency_ratio", "preset"}))
    link.latency = trace.states.front().latency;
  if (trace.gives_bandwidth && !gives({"bandwidth", "transfer_ratio", "connections", "preset"}))
    link.bandwidth = trace.states.front().bandwidth;
  if (!repeat) return;
  link.weather.repeat = read_duration(*repeat);
  if (*link.weather.repeat <= trace.states.back().at)
    fail_at(repeat->node->place,
            "{} = {} ends before the trace does (its last time is {}). Use more.", repeat->path,
            to_text(*repeat->node), longhaul::to_text(trace.states.back().at));
}

Loss read_loss(const Field& field) {
  Loss loss;
  if (field.node->kind != ConfigNode::Kind::table) {
    loss.probability = read_number(field, 0, 1);
    return loss;
  }
  const Section section{*field.node, field.path, {"probability", "delay"}};
  loss.probability = read_number(
      section.require("probability", "it says how many of the messages are late"), 0, 1);
  if (const auto delay = section.find("delay")) loss.delay = read_duration(*delay);
  return loss;
}

Outage read_outage(const Field& field) {
  const auto times = elements(field);
  if (times.size() != 2)
    fail_at(field.node->place,
            "{} has {} values (an outage is its begin and its length). Write "
            "[\"30s\", \"5s\"].",
            field.path, times.size());
  const Outage outage{read_duration(times[0]), read_duration(times[1])};
  if (outage.length == Duration::zero())
    fail_at(times[1].node->place, "{} lasts no time (then nothing is out). Use more, or remove it.",
            field.path);
  return outage;
}

std::vector<Outage> read_outages(const Field& field) {
  const auto items = elements(field);
  const bool one = !items.empty() && items.front().node->kind != ConfigNode::Kind::list;
  if (one) return {read_outage(field)};
  if (items.size() > kMostOutages)
    fail_at(field.node->place, "{} has {} outages ({} is the limit). Use fewer.", field.path,
            items.size(), kMostOutages);
  std::vector<Outage> outages;
  for (const Field& item : items) {
    outages.push_back(read_outage(item));
    if (outages.size() < 2) continue;
    const Outage& before = outages[outages.size() - 2];
    if (outages.back().begin < before.begin + before.length)
      fail_at(item.node->place,
              "{} begins before the one in front of it ends (outages stand in order of time). Sort "
              "them, or write one for both.",
              item.path);
  }
  return outages;
}

}  // namespace

void read_weather(const Section& section, TraceStore& traces, const Scenario& scenario,
                  bool message_known, Link& link) {
  read_trace(section, traces, scenario, message_known, link);
  if (const auto field = section.find("loss")) link.weather.loss = read_loss(*field);
  if (const auto field = section.find("outage")) link.weather.outages = read_outages(*field);
}

}  // namespace longhaul::scenario
