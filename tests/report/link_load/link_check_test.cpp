#include "report/link_load/link_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/four_rings.hpp"
#include "support/levels.hpp"
#include "support/shipped.hpp"
#include "trace/hdf5/row_source.hpp"

namespace longhaul::report {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A message of 1 MB from rank 0 to rank 1, which lie in two datacenters, takes 8 ms.
const std::string kTwoSites = R"([costs]
forward = "1ms"
message = "1MB"
[parallel]
stages = 2
microbatches = 2
[[datacenter]]
name = "west"
stages = [0]
[[datacenter]]
name = "east"
stages = [1]
[[link]]
between = ["west", "east"]
latency = "5ms"
bandwidth = "1Gbps"
)";

trace::RunInfo info_of(const std::string& scenario, const std::string& environment = "{}") {
  trace::RunInfo info;
  info.scenario = scenario;
  info.environment = environment;
  return info;
}

TimelineRow send_of(std::int64_t op, std::int64_t start_ms, std::int64_t end_ms, int from = 0,
                    int to = 1) {
  TimelineRow row;
  row.op = op;
  row.kind = RowKind::send;
  row.rank = from;
  row.peer = to;
  row.size_bytes = 1'000'000;
  row.start_ns = start_ms * 1'000'000;
  row.end_ns = end_ms * 1'000'000;
  return row;
}

struct Checked {
  std::vector<std::string> problems, notes;
};

/// Looks at a group of these rows.
Checked check(const trace::RunInfo& info, const std::vector<TimelineRow>& rows, const char* group,
              std::int64_t slack_ns = 0, const std::string& schedule = "1f1b") {
  Timeline names;
  names.schedules = {schedule};
  LinkCheck links{info};
  links.begin(group, slack_ns, names);
  for (const TimelineRow& row : rows) links.add({&row, 1});
  links.end();
  return {links.problems(), links.notes()};
}

// A model's hop is its fixed cost: what passes from stage to stage of a prompt holds nothing.
TEST(LinkCheck, LeavesOutActivationsOfPrompts) {
  TimelineRow hop = send_of(7, 0, 0);
  hop.request = 3;
  const Checked checked = check(info_of(kTwoSites), {send_of(1, 0, 8), hop}, "measured");
  EXPECT_THAT(checked.problems, IsEmpty());
  EXPECT_THAT(checked.notes, ::testing::Contains(HasSubstr(
                                 "activations between stages of prompts, which hold no link (1)")));
  hop.request = -1;
  EXPECT_THAT(check(info_of(kTwoSites), {send_of(1, 0, 8), hop}, "measured").problems,
              ::testing::Not(IsEmpty()));
}

TEST(LinkCheck, TakesMessagesThatFollowEachOther) {
  const Checked found =
      check(info_of(kTwoSites), {send_of(1, 0, 8), send_of(2, 8, 16), send_of(3, 0, 8, 1, 0)},
            "predicted");
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(
      found.notes,
      ElementsAre("3 messages: none of 2 links, interfaces and ports carries more than rate "
                  "x time"));
}

TEST(LinkCheck, AMessageThatDoesNotRunCarriesNothing) {
  TimelineRow skipped = send_of(2, 0, 0);
  skipped.outcome = static_cast<std::int32_t>(Outcome::skipped);
  const Checked found = check(info_of(kTwoSites), {send_of(1, 0, 8), skipped}, "predicted");
  EXPECT_THAT(found.problems, IsEmpty());
}

TEST(LinkCheck, NamesLinkWindowBytesAndRate) {
  const Checked found =
      check(info_of(kTwoSites), {send_of(1, 0, 8), send_of(2, 10, 14)}, "predicted");
  EXPECT_THAT(found.problems,
              ElementsAre("predicted: link 0>1 carries 1000000 bytes from 10000000 to 14000000 ns "
                          "(schedule 0, iteration 0), which take 8000000 ns at its 1 Gbps."));
}

// The old model of data parallelism: four rings that crossed one link of 200 Gbps at 800.
TEST(LinkCheck, RefusesFourRingsAtOnceOnOneLink) {
  const Scenario scenario = testing::one_link_of_200_gbps(testing::kShippedScenarios);
  const trace::Trace forged = testing::four_rings_at_once(scenario);
  LinkCheck links{forged.info};
  trace::Diagnostics others;
  trace::RowsInMemory rows{forged.predicted};
  trace::check_rows(rows, "predicted", 0, others, trace::kSortBytes, &links);
  EXPECT_THAT(others.texts(), IsEmpty());
  ASSERT_EQ(links.problems().size(), 2U);  // the link, and what all of its datacenters' links carry
  EXPECT_EQ(links.problems()[0],
            "predicted: link west>east carries 4000000000 bytes from 10000000 to 50000000 ns "
            "(schedule 0, iteration 0), which take 160000000 ns at its 200 Gbps.");
  EXPECT_THAT(links.problems()[1], HasSubstr("aggregate west>east carries 4000000000 bytes"));
}

TEST(LinkCheck, TakesThePlanOfTodayOnThatLink) {
  const Scenario scenario = testing::one_link_of_200_gbps(testing::kShippedScenarios);
  const Schedule schedule = schedule::generate("1f1b", scenario);
  const Plan plan = plan::lower(schedule, scenario);
  Timeline timeline;
  plan::append_rows(timeline, plan, sim::simulate(plan), 0);
  LinkCheck links{info_of(scenario.text)};
  links.begin("predicted", 0, timeline);
  links.add(timeline.rows);
  links.end();
  EXPECT_THAT(links.problems(), IsEmpty());
  EXPECT_EQ(links.json()["resources"], 4);
  EXPECT_EQ(links.json()["messages"], 16);  // a gather and a scatter of 4 stages, 2 ways
  EXPECT_EQ(links.json()["not_checked"].size(), 0U);
}

TEST(LinkCheck, ForgivesMeasuredRowsTheCreditAndTheClocks) {
  // 8 ms that took 7.9: 2% are 160 us.
  std::vector<TimelineRow> rows{send_of(1, 0, 8)};
  rows[0].end_ns = 7'900'000;
  EXPECT_THAT(check(info_of(kTwoSites), rows, "predicted").problems.size(), 1U);
  EXPECT_THAT(check(info_of(kTwoSites), rows, "measured").problems, IsEmpty());
  const auto credit = [&](const char* ns) {
    return info_of(kTwoSites, std::string{R"({"lateness_credit_ns": )"} + ns + "}");
  };
  EXPECT_THAT(check(credit("0"), rows, "measured").problems.size(), 1U);
  EXPECT_THAT(check(credit("99990"), rows, "measured").problems.size(), 1U);
  EXPECT_THAT(check(credit("99999"), rows, "measured").problems, IsEmpty());
  rows[0].end_ns = 7'839'000;
  EXPECT_THAT(check(info_of(kTwoSites), rows, "measured").problems.size(), 1U);
  // Two hosts of 500 ns each.
  EXPECT_THAT(check(info_of(kTwoSites), rows, "measured", 2000).problems, IsEmpty());
}

TEST(LinkCheck, ReadsTimesAsPlayed) {
  trace::RunInfo info = info_of(kTwoSites + "# --set run.time_scale=0.5\n");
  EXPECT_THAT(check(info, {send_of(1, 0, 4)}, "predicted").problems.size(), 1U);
  info.time_scale = 0.5;  // as ranks played it
  EXPECT_THAT(check(info, {send_of(1, 0, 4)}, "predicted").problems, IsEmpty());
  EXPECT_THAT(check(info, {send_of(1, 0, 3)}, "predicted").problems.size(), 1U);
}

TEST(LinkCheck, HoldsEachIterationToItsLinks) {
  const trace::RunInfo info = info_of(kTwoSites +
                                      "# --set link.bandwidth=2Gbps\n"
                                      "# --change 3:link.bandwidth=4Gbps\n");
  const auto in = [](int iteration, std::int64_t milliseconds) {
    std::vector<TimelineRow> rows{send_of(1, 0, milliseconds)};
    rows[0].iteration = iteration;
    return rows;
  };
  EXPECT_THAT(check(info, in(2, 4), "measured").problems, IsEmpty());
  EXPECT_THAT(check(info, in(2, 2), "measured").problems,
              ElementsAre(AllOf(HasSubstr("measured: link 0>1"), HasSubstr("iteration 2"),
                                HasSubstr("at its 2 Gbps"))));
  EXPECT_THAT(check(info, in(3, 2), "measured").problems, IsEmpty());
  EXPECT_THAT(check(info, in(3, 1), "measured").problems.size(), 1U);
  // Predictions: that of the first links, and that of the change.
  EXPECT_THAT(check(info, in(0, 2), "predicted").problems.size(), 1U);
  EXPECT_THAT(check(info, in(0, 2), "predicted", 0, "1f1b+change@3").problems, IsEmpty());
}

TEST(LinkCheck, SaysWhatItCannotCheck) {
  const std::vector<TimelineRow> rows{send_of(1, 0, 1)};
  const auto notes = [&](const std::string& scenario, const char* group,
                         const std::string& environment = "{}") {
    const Checked found = check(info_of(scenario, environment), rows, group);
    EXPECT_THAT(found.problems, IsEmpty());
    return found.notes;
  };
  EXPECT_THAT(notes(kTwoSites, "measured", R"({"emulate": "off"})"),
              ElementsAre("not checked: measured: iterations whose emulation was off, the network "
                          "was another one (1)"));
  EXPECT_THAT(notes(kTwoSites + "jitter = 0.1\n", "measured"),
              ElementsAre("not checked: measured: messages from west to east, jitter changes how "
                          "long they hold links (1)"));
  EXPECT_THAT(notes(kTwoSites + "trace = \"w.csv\"\n#: trace w.csv\n#: time_s,bandwidth_gbps\n"
                                "#: 0,1\n#: 5,2\n",
                    "measured"),
              ElementsAre("not checked: measured: the link from west to east, its rate changes "
                          "(1)"));
  EXPECT_THAT(notes("", "predicted"),
              ElementsAre("not checked: links, the scenario cannot be read (the trace has no "
                          "scenario)"));
  EXPECT_THAT(notes("[costs]\n", "predicted"),
              ElementsAre(HasSubstr("links, the scenario cannot be read (the trace's scenario")));
  const std::string unlimited = kTwoSites.substr(0, kTwoSites.find("bandwidth"));
  EXPECT_THAT(notes(unlimited, "predicted"),
              ElementsAre("no message holds a link, interface or port that has a rate"));
  // A prediction is made for the link as it is without its weather.
  EXPECT_EQ(check(info_of(kTwoSites + "jitter = 0.1\n"), rows, "predicted").problems.size(), 1U);
}

TEST(LinkCheck, CountsCollectivesThatAreOneOp) {
  std::vector<TimelineRow> rows{send_of(1, 0, 8), {}, {}};
  rows[1].kind = rows[2].kind = RowKind::all_reduce;
  EXPECT_THAT(check(info_of(kTwoSites), rows, "predicted").notes,
              ElementsAre(HasSubstr("1 messages"),
                          "not checked: predicted: collectives that are one op, their messages are "
                          "not in the trace (2)"));
}

// An interface keeps its rate beside a link whose rate changes.
TEST(LinkCheck, HoldsInterfacesBesideALinkWithATrace) {
  const std::string text = kTwoSites +
                           "trace = \"w.csv\"\n[[node]]\ndatacenter = \"west\"\negress = "
                           "\"2Gbps\"\n#: trace w.csv\n#: time_s,bandwidth_gbps\n#: 0,1\n#: 5,9\n";
  EXPECT_THAT(check(info_of(text), {send_of(1, 0, 4)}, "measured").problems, IsEmpty());
  EXPECT_THAT(check(info_of(text), {send_of(1, 0, 3)}, "measured").problems,
              ElementsAre(HasSubstr("egress west/0 carries 1000000 bytes")));
}

TEST(LinkCheck, RefusesRanksAndWaysThatTheScenarioLacks) {
  EXPECT_THAT(check(info_of(kTwoSites), {send_of(5, 0, 8, 0, 2)}, "predicted").problems,
              ElementsAre("predicted: op 5 (schedule 0, iteration 0) goes from rank 0 to 2 (the "
                          "scenario has 2 ranks)."));
  std::string three = kTwoSites;
  three.replace(three.find("stages = 2"), 10, "stages = 3");
  three +=
      "[[datacenter]]\nname = \"north\"\nstages = [2]\n[[link]]\nbetween = [\"east\", "
      "\"north\"]\nlatency = \"1ms\"\n";
  EXPECT_THAT(
      check(info_of(three), {send_of(5, 0, 8, 0, 2)}, "predicted").problems,
      ElementsAre("predicted: op 5 (schedule 0, iteration 0) goes from rank 0 to 2 (no link "
                  "of the scenario leads there)."));
}

// Ports inside a node, interfaces between nodes, interfaces to the WAN.
TEST(LinkCheck, HoldsAllThreeLevels) {
  const Scenario scenario =
      testing::scenario_of({.datacenters = 2,
                            .nodes = 2,
                            .gpus = 2,
                            .interfaces = "device = \"4GB/s\"\ninternal = \"2GB/s\"\n"
                                          "egress = \"1GB/s\"\ningress = \"1GB/s\"",
                            .link = "latency = \"1ms\""});
  const auto problem_of = [&](int from, int to, std::int64_t microseconds) {
    TimelineRow row = send_of(1, 0, 0, from, to);
    row.end_ns = microseconds * 1000;
    std::vector<std::string> names;
    for (const std::string& text : check(info_of(scenario.text), {row}, "predicted").problems)
      names.push_back(text.substr(11, text.find(" carries") - 11));
    return names;
  };
  EXPECT_THAT(problem_of(0, 1, 250), IsEmpty());
  EXPECT_THAT(problem_of(0, 1, 249), ElementsAre("port-out 0", "port-in 1"));
  EXPECT_THAT(problem_of(1, 2, 500), IsEmpty());
  EXPECT_THAT(problem_of(1, 2, 499), ElementsAre("internal-out dc0/0", "internal-in dc0/1"));
  EXPECT_THAT(problem_of(3, 7, 1000), IsEmpty());
  EXPECT_THAT(problem_of(3, 7, 999), ElementsAre("egress dc0/1", "ingress dc1/1"));
}

}  // namespace
}  // namespace longhaul::report
