// How fast are schedules made, checked and written? One rank, Google Benchmark; P = 64, M = 1024.
#include <benchmark/benchmark.h>

#include "schedule/csv.hpp"
#include "schedule/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity.hpp"

namespace longhaul {
namespace {

Scenario large_scenario() { return uniform_scenario(64, 1024); }

std::int64_t blocks_of(const Schedule& schedule) {
  std::int64_t blocks = 0;
  for (const auto& row : schedule.rows) blocks += static_cast<std::int64_t>(row.size());
  return blocks;
}

void report_blocks(benchmark::State& state, const Schedule& schedule) {
  const auto blocks = static_cast<double>(state.iterations() * blocks_of(schedule));
  state.counters["blocks/s"] = benchmark::Counter(blocks, benchmark::Counter::kIsRate);
}

void generate_blocks(benchmark::State& state, const std::string& name) {
  const Scenario scenario = large_scenario();
  for (auto _ : state) {
    Schedule schedule = generate(name, scenario);
    benchmark::DoNotOptimize(schedule.rows.data());
    benchmark::ClobberMemory();
  }
  report_blocks(state, generate(name, scenario));
}

void check_blocks(benchmark::State& state, const std::string& name) {
  const Schedule schedule = generate(name, large_scenario());
  for (auto _ : state) {
    if (first_violation(schedule)) state.SkipWithError("the schedule is not valid");
  }
  report_blocks(state, schedule);
}

void find_peaks(benchmark::State& state, const std::string& name) {
  const Scenario scenario = large_scenario();
  const Schedule schedule = generate(name, scenario);
  for (auto _ : state) benchmark::DoNotOptimize(peak_activation(schedule, scenario).data());
  report_blocks(state, schedule);
}

void write_blocks(benchmark::State& state, const std::string& name) {
  const Schedule schedule = generate(name, large_scenario());
  for (auto _ : state) benchmark::DoNotOptimize(write_csv(schedule).data());
  report_blocks(state, schedule);
}

void read_blocks(benchmark::State& state, const std::string& name) {
  const Schedule schedule = generate(name, large_scenario());
  const std::string text = write_csv(schedule);
  for (auto _ : state) {
    if (read_csv(text, "schedule.csv", name) != schedule) state.SkipWithError("not the same");
  }
  report_blocks(state, schedule);
}

void register_all() {
  for (const std::string& name : static_schedule_names()) {
    benchmark::RegisterBenchmark(("generate/" + name).c_str(), generate_blocks, name);
  }
  for (const char* name : {"1f1b", "zb-h1", "zbv"}) {
    const auto add = [name](const char* what, auto function) {
      benchmark::RegisterBenchmark((what + std::string{name}).c_str(), function, std::string{name});
    };
    add("check/", check_blocks);
    add("peaks/", find_peaks);
    add("write_csv/", write_blocks);
    add("read_csv/", read_blocks);
  }
}

}  // namespace
}  // namespace longhaul

int main(int argc, char** argv) {
  longhaul::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
