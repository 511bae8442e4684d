#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "scenario/reader/load.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::testing {

/// dp-2dc with one link of 200 Gbps for all of a site: four stages, a replica in each of two.
inline Scenario one_link_of_200_gbps(const std::filesystem::path& scenarios) {
  const std::vector<std::string> set{"link.sharing=datacenter", "link.aggregate=200Gbps"};
  return scenario::load_scenario(scenarios / "dp-2dc.toml", set);
}

/// A trace of a model in which rings hold no links: a step of each of the four, 1 GB from west to
/// east, all from 10 to 50 ms, as if each had the link to itself.
inline trace::Trace four_rings_at_once(const Scenario& scenario) {
  trace::Trace trace;
  trace.info.creator = "test";
  trace.info.scenario = scenario.text;
  Timeline& rows = trace.predicted;
  rows.schedules = {"1f1b"};
  rows.datacenters = {"west", "east"};
  for (int stage = 0; stage < 4; ++stage) {
    rows.lanes.push_back(fmt::format("send>{}", stage + 4));
    rows.resources.push_back(fmt::format("link {}>{}", stage, stage + 4));
    rows.collectives.push_back(fmt::format("all_gather of chunk {}", stage));
  }
  rows.lanes.emplace_back("recv");
  for (int op = 0; op < 8; ++op) {
    const int stage = op % 4;
    const bool sends = op < 4;
    TimelineRow row;
    row.op = op;
    row.rank = op;
    row.replica = row.datacenter = sends ? 0 : 1;
    row.device = stage;
    row.lane = sends ? stage : 4;
    row.resource = sends ? stage : -1;
    row.kind = sends ? RowKind::send : RowKind::recv;
    row.chunk = stage;
    row.peer = sends ? op + 4 : op - 4;
    row.collective = stage;
    row.step = 0;
    row.level = static_cast<std::int32_t>(NetworkLevel::wan);
    row.size_bytes = 1'000'000'000;
    row.start_ns = 10'000'000;
    row.end_ns = sends ? 50'000'000 : 70'000'000;
    row.planned_ns = sends ? 40'000'000 : 20'000'000;
    rows.rows.push_back(row);
  }
  return trace;
}

}  // namespace longhaul::testing
