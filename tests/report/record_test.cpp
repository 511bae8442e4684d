#include "report/record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/tables.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

trace::IterationReport report_of_two_ranks() {
  trace::IterationReport report;
  report.schedule = "1f1b";
  report.makespan_ns = 9000;
  report.device_span_ns = 8000;
  report.bubble_ratio = {0.25, 0.5};
  report.peak_activation_bytes = {4 << 20, 1 << 20};
  report.idle.dependency = 5000;
  report.idle.link_wait = 1750;
  report.wan_crossings_on_critical_path = 3;
  return report;
}

TEST(Record, HoldsWhatTheReportSaysInUnitsOfTheScenario) {
  const Scenario scenario = uniform_scenario(2, 3);
  const ScheduleRecord record =
      make_record(report_of_two_ranks(), schedule::generate("1f1b", scenario), scenario);
  EXPECT_DOUBLE_EQ(record.per_microbatch_ns, 3000.0);
  EXPECT_THAT(record.peak_activation, ElementsAre(2.0, 0.5));  // of 2 MiB
  EXPECT_TRUE(record.over_budget.empty());
  EXPECT_EQ(record.wan_crossings_on_critical_path, 3);
  EXPECT_FALSE(record.tokens_per_second);
}

TEST(Record, PeakOfADeviceIsTheLargestOfItsReplicas) {
  Scenario scenario = uniform_scenario(2, 3);
  scenario.parallel.replicas = 2;
  scenario.placement.assign(4, DatacenterId{0});
  trace::IterationReport report = report_of_two_ranks();
  report.peak_activation_bytes = {1 << 20, 2 << 20, 4 << 20, 0};
  report.bubble_ratio = {0, 0, 0, 0};
  const ScheduleRecord record = make_record(report, schedule::generate("1f1b", scenario), scenario);
  EXPECT_THAT(record.peak_activation, ElementsAre(2.0, 1.0));
}

TEST(Record, MarksDevicesOverTheBudget) {
  Scenario scenario = uniform_scenario(2, 3);
  const Schedule gpipe = schedule::generate("gpipe", scenario);
  const ScheduleRecord record = make_record(report_of_two_ranks(), gpipe, scenario);
  EXPECT_THAT(record.over_budget, ElementsAre(0, 1));
  const std::string text = table_text({&record, 1}, scenario);
  EXPECT_THAT(text, HasSubstr("2.00 !"));
  EXPECT_THAT(text, HasSubstr("over the budget of 2 activations"));
}

/// GPipe holds three activations on both devices, 1F1B two and one; all else is the same.
TEST(Record, MarksWhatDoesNotFitTheCapacity) {
  Scenario scenario = uniform_scenario(2, 3);
  scenario.memory.budget = 2;
  const auto record_with = [&](const char* name, std::vector<std::optional<Bytes>> capacity) {
    scenario.memory.capacity = std::move(capacity);
    trace::IterationReport report = report_of_two_ranks();
    report.schedule = name;
    return make_record(report, schedule::generate(name, scenario), scenario);
  };
  const std::vector<schedule::DeviceNeed> needs =
      schedule::device_memory(schedule::generate("gpipe", scenario), scenario);
  const Bytes enough = needs[0].total();
  const std::vector<std::optional<Bytes>> one_too_small{enough - Bytes{1}, needs[1].total()};
  const std::vector<ScheduleRecord> records{record_with("gpipe", one_too_small),
                                            record_with("1f1b", one_too_small)};
  EXPECT_EQ(to_json(records[0])["fits"], false);
  EXPECT_EQ(to_json(records[1])["fits"], true);
  const std::string text = table_text(records, scenario);
  EXPECT_THAT(text, HasSubstr("2.00 !"));
  EXPECT_THAT(text, HasSubstr("! gpipe does not fit on device 0: "));
  EXPECT_THAT(text, HasSubstr(" on device 0\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("1f1b does not fit")));
  const ScheduleRecord fitting = record_with("gpipe", {enough, needs[1].total()});
  EXPECT_EQ(to_json(fitting)["fits"], true);
  const ScheduleRecord unknown = record_with("gpipe", {std::nullopt, std::nullopt});
  EXPECT_EQ(to_json(unknown)["fits"], true) << "without a capacity nothing can fail to fit";
}

TEST(Record, TasksBesideDevicesAreInTheJsonWhereThereAreAny) {
  const Scenario scenario = uniform_scenario(2, 3);
  trace::IterationReport report = report_of_two_ranks();
  report.idle.copy = 250;
  report.tasks[index(TaskKind::copy)] = {3, 400, 500};
  const auto answer = to_json(make_record(report, schedule::generate("1f1b", scenario), scenario));
  EXPECT_EQ(answer["idle"]["copy"], 250);
  EXPECT_FALSE(answer["idle"].contains("host_task"));
  EXPECT_EQ(answer["tasks"].dump(), R"({"copy":{"tasks":3,"busy_ns":400,"work_ns":500}})");
}

TEST(Record, JsonKeysAreThoseOfTheFormat) {
  const Scenario scenario = uniform_scenario(2, 3);
  const auto answer =
      to_json(make_record(report_of_two_ranks(), schedule::generate("1f1b", scenario), scenario));
  std::vector<std::string> keys;
  for (const auto& [key, value] : answer.items()) keys.push_back(key);
  EXPECT_THAT(keys,
              ElementsAre("schedule", "grain", "makespan_ns", "iteration_ns", "device_span_ns",
                          "per_microbatch_ns", "lower_bound_ns", "gap", "bound_holds_for",
                          "bound_reason", "bubble_ratio", "peak_activation", "over_budget", "fits",
                          "wan_crossings_on_critical_path", "idle", "tokens_per_second", "mfu",
                          "resources", "traffic"));
  EXPECT_EQ(answer["idle"]["dependency"], 5000);
  EXPECT_EQ(std::ssize(answer["idle"]),
            std::ranges::count(trace::idle_parts(), false, &trace::IdlePart::of_tasks));
}

TEST(Record, HoldsItsMakespanAgainstTheBound) {
  const Scenario scenario = uniform_scenario(2, 3);
  ScheduleRecord record =
      make_record(report_of_two_ranks(), schedule::generate("1f1b", scenario), scenario);
  EXPECT_EQ(record.bound->lower_bound,
            planner::lower_bound(schedule::generate("1f1b", scenario), scenario).lower_bound);
  record.bound->lower_bound = Duration{7200};
  record.bound->holds_for = "some class";
  EXPECT_DOUBLE_EQ(to_json(record)["gap"].get<double>(), 0.25);
  const std::string text = table_text({&record, 1}, scenario);
  EXPECT_THAT(text, ::testing::AllOf(HasSubstr("gap [%]"), HasSubstr("25.0"),
                                     HasSubstr("7.200  1f1b       some class")));
}

TEST(Record, WithoutABoundItsKeysAreNull) {
  const Scenario scenario = uniform_scenario(2, 3);
  const ScheduleRecord record = make_record(
      report_of_two_ranks(), schedule::generate("1f1b", scenario), scenario, Bounds::left_out);
  EXPECT_FALSE(record.gap());
  const auto answer = to_json(record);
  for (const char* key : {"lower_bound_ns", "gap", "bound_holds_for", "bound_reason"})
    EXPECT_TRUE(answer[key].is_null()) << key;
  const std::string text = table_text({&record, 1}, scenario);
  EXPECT_THAT(text, HasSubstr("--bounds shows"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("gap")));
}

TEST(Record, ASchedulesBoundAllowsTheMemoryThatItTakes) {
  const Scenario scenario = uniform_scenario(4, 8);
  const planner::Bound within = bound_of(schedule::generate("zb-h1", scenario), scenario);
  EXPECT_EQ(within.lower_bound,
            planner::lower_bound(schedule::generate("zb-h1", scenario), scenario).lower_bound);
  const planner::Bound beyond = bound_of(schedule::generate("zb-h2", scenario), scenario);
  EXPECT_LE(beyond.lower_bound, within.lower_bound);
  EXPECT_NE(beyond.holds_for, within.holds_for);
}

TEST(Record, DpOverlapIsShownWhereThereIsDataParallelCommunication) {
  const Scenario scenario = uniform_scenario(2, 3);
  trace::IterationReport report = report_of_two_ranks();
  const Schedule schedule = schedule::generate("1f1b", scenario);
  const ScheduleRecord without = make_record(report, schedule, scenario);
  EXPECT_FALSE(to_json(without).contains("dp_overlap"));
  EXPECT_THAT(table_text({&without, 1}, scenario), ::testing::Not(HasSubstr("DP overlap")));
  report.dp_overlap = 0.375;
  const std::vector<ScheduleRecord> records{make_record(report, schedule, scenario), without};
  EXPECT_EQ(to_json(records[0])["dp_overlap"], 0.375);
  EXPECT_THAT(table_text(records, scenario),
              ::testing::AllOf(HasSubstr("DP overlap [%]"), HasSubstr("37.5")));
}

TEST(Record, IdleTableShowsSharesOfDeviceTimeAndLeavesOutEmptyParts) {
  const Scenario scenario = uniform_scenario(2, 3);
  const ScheduleRecord record =
      make_record(report_of_two_ranks(), schedule::generate("1f1b", scenario), scenario);
  const std::string text = idle_table_text({&record, 1});
  EXPECT_THAT(text, HasSubstr("37.5"));  // 6750 of 18000 ns
  EXPECT_THAT(text, HasSubstr("27.8"));  // dependency
  EXPECT_THAT(text, HasSubstr("9.7"));   // link_wait
  EXPECT_THAT(text, ::testing::Not(HasSubstr("memory")));
}

TEST(Throughput, CountsTokensAndFlopsOfAllReplicasAndGpus) {
  Scenario scenario = uniform_scenario(2, 3);
  scenario.parallel.replicas = 2;
  Model model;
  model.layers = 2;
  model.hidden = model.intermediate = 8;
  model.heads = model.kv_heads = 1;
  model.sequence_length = 10;
  model.microbatch_size = 4;
  model.tensor_parallel = 2;
  EXPECT_FALSE(tokens_per_second(scenario, 1'000'000));
  scenario.model = model;
  // 2 replicas of 3 microbatches of 4 * 10 tokens in 1 ms.
  EXPECT_DOUBLE_EQ(tokens_per_second(scenario, 1'000'000).value(), 240e3);
  EXPECT_FALSE(model_flops_utilization(scenario, 1'000'000));
  scenario.model->peak_flops = 1e9;
  // A layer has 4 * 64 + 3 * 64 = 448 weights: 2 * 40 * 448 FLOPs, and 2 * 40 * 10 * 8 of causal
  // attention; 3 times that for forward and backward, 2 layers, 6 microbatches; 8 GPUs.
  const double flops = (2.0 * 40 * 448 + 2.0 * 40 * 10 * 8) * 3 * 2 * 6;
  EXPECT_DOUBLE_EQ(model_flops_utilization(scenario, 1'000'000).value(), flops / (1e-3 * 8 * 1e9));
}

TEST(Record, TableShowsThroughputWhereTheModelIsKnown) {
  const Scenario scenario = uniform_scenario(2, 3);
  ScheduleRecord record =
      make_record(report_of_two_ranks(), schedule::generate("1f1b", scenario), scenario);
  record.tokens_per_second = 24444.6;
  record.mfu = 0.264;
  const std::string text = table_text({&record, 1}, scenario);
  for (const char* part : {"tokens/s", "24445", "MFU [%]", "26.4"})
    EXPECT_THAT(text, HasSubstr(part));
}

ScheduleRecord record_with_links(const std::string& schedule, int links) {
  ScheduleRecord record;
  record.schedule = schedule;
  record.makespan_ns = 1000;
  for (int i = 0; i < links; ++i)
    record.resources.push_back(
        {"link " + std::to_string(i), ResourceKind::link, Duration{100 * i}, 3U});
  return record;
}

TEST(ResourceTable, ShowsTheBusiestUnderEachSchedule) {
  const std::vector<ScheduleRecord> records{record_with_links("a", 3), record_with_links("b", 4)};
  EXPECT_EQ(resource_table_text(records),
            "\nHow busy links, interfaces and collectives were, the busiest first:\n"
            "busy [%]  link 3  link 2  link 1\n"
            "--------  ------  ------  ------\n"
            "a            0.0    20.0    10.0\n"
            "b           30.0    20.0    10.0\n");
}

TEST(ResourceTable, LeavesOutWhatIsIdleAndTellsHowManyMoreThereAre) {
  const ScheduleRecord idle = record_with_links("a", 1);
  EXPECT_EQ(resource_table_text({&idle, 1}), "");
  const ScheduleRecord busy = record_with_links("a", 11);  // one of them idle
  const std::string text = resource_table_text({&busy, 1});
  EXPECT_THAT(text, HasSubstr("link 10"));
  EXPECT_THAT(text, HasSubstr("link 3"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("link 2")));
  EXPECT_THAT(text, HasSubstr("and 2 more"));
}

TEST(ResourceTable, JsonHoldsIdleOnesToo) {
  const auto answer = resources_json(record_with_links("a", 2));
  ASSERT_EQ(answer.size(), 2U);
  EXPECT_EQ(answer[0]["busy_ns"], 0);
  EXPECT_EQ(answer[1]["resource"], "link 1");
  EXPECT_DOUBLE_EQ(answer[1]["busy_ratio"], 0.1);
  EXPECT_EQ(answer[1]["holds"], 3);
}

TEST(Record, RangesOfNumbers) {
  EXPECT_EQ(ranges_text(std::vector<int>{}), "");
  EXPECT_EQ(ranges_text(std::vector<int>{4}), "4");
  EXPECT_EQ(ranges_text(std::vector<int>{0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
}

TEST(TimeScale, TakesTheUnitOfTheLargestTime) {
  EXPECT_EQ(TimeScale{3300.0}.text(2550), "2.550");
  EXPECT_STREQ(TimeScale{3300.0}.unit(), "us");
  EXPECT_EQ(TimeScale{27.0}.text(27), "27.00");
  EXPECT_EQ(TimeScale{2'419'000'000.0}.text(151'200'000), "0.151");
  EXPECT_STREQ(TimeScale{2'419'000'000.0}.unit(), "s");
  EXPECT_EQ(TimeScale{151'200'000.0}.text(151'200'000), "151.2");
  EXPECT_EQ(TimeScale{0.0}.text(0), "0");
}

}  // namespace
}  // namespace longhaul::report
