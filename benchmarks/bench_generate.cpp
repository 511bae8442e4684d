// How fast are schedules made, checked and written? One rank, Google Benchmark; P = 64, M = 1024
// where the name says nothing else.
#include <cmath>
#include <ctime>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "harness/environment/kernel_main.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

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

/// Two datacenters, four blocks' time of latency and half a block's of transfer between them.
Scenario across_datacenters(int stages, int microbatches, Sharing sharing) {
  Scenario scenario =
      spread(uniform_scenario(stages, microbatches), 2, Duration{400}, Duration{50});
  for (Link& link : scenario.links) link.sharing = sharing;
  return scenario;
}

void generate_for_links(benchmark::State& state, const std::string& name, Sharing sharing) {
  const Scenario scenario = across_datacenters(static_cast<int>(state.range(0)),
                                               static_cast<int>(state.range(1)), sharing);
  std::int64_t blocks = 0;
  for (auto _ : state) {
    const Schedule schedule = generate(name, scenario);
    blocks += blocks_of(schedule);
  }
  state.counters["blocks/s"] =
      benchmark::Counter(static_cast<double>(blocks), benchmark::Counter::kIsRate);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["process_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

/// Atlas' simulated cluster (section 6.3): 60 stages in five datacenters, 60 microbatches, a
/// message takes as long as four forwards on one node.
Scenario atlas_cluster(int pipelines) {
  Scenario scenario = uniform_scenario(60, 60, Duration{1000});
  scenario.costs.backward.assign(60, Duration{2000});
  scenario.memory.recompute = true;
  scenario.parallel.replicas = pipelines;
  scenario.parallel.cell = 4;
  return spread(scenario, 5, Duration{500}, Duration{4000});
}

void generate_cells(benchmark::State& state, const std::string& name) {
  const Scenario scenario = atlas_cluster(static_cast<int>(state.range(0)));
  std::int64_t blocks = 0;
  for (auto _ : state) blocks += blocks_of(generate(name, scenario));
  state.counters["blocks/s"] =
      benchmark::Counter(static_cast<double>(blocks), benchmark::Counter::kIsRate);
}

/// CPU seconds of the fastest of three.
double seconds_to_generate(const std::string& name, const Scenario& scenario) {
  double least = HUGE_VAL;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begin = std::clock();
    benchmark::DoNotOptimize(generate(name, scenario).rows.data());
    least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

/// Slope of a line through (x, y) by least squares.
double slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum_x += x[i];
    sum_y += y[i];
    sum_xx += x[i] * x[i];
    sum_xy += x[i] * y[i];
  }
  return (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
}

/// How does the time grow, as a power of the number of blocks? Over microbatches at P = 64, and
/// over stages with four microbatches each; sizes at which one set of rules is run.
void find_exponent(benchmark::State& state, const std::string& name, bool over_stages) {
  std::vector<double> blocks, seconds;
  for (auto _ : state) {
    for (int scale = 1; scale <= 8; scale *= 2) {
      const int stages = over_stages ? 128 * scale : 64;
      const int microbatches = over_stages ? 4 * stages : 1024 * scale;
      const Scenario scenario = across_datacenters(stages, microbatches, Sharing::pair);
      blocks.push_back(std::log(3.0 * stages * microbatches));
      seconds.push_back(std::log(seconds_to_generate(name, scenario)));
    }
  }
  state.counters["exponent"] = slope(blocks, seconds);
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

void register_greedy() {
  for (const Generator& generator : generators()) {
    if (generator.knowledge != Knowledge::times) continue;
    const std::string name{generator.name};
    benchmark::RegisterBenchmark(("generate/" + name).c_str(), generate_for_links, name,
                                 Sharing::pair)
        ->ArgsProduct({{8}, {16}})
        ->ArgsProduct({{64}, {512, 1024}});
    benchmark::RegisterBenchmark(("generate_shared_link/" + name).c_str(), generate_for_links, name,
                                 Sharing::datacenter)
        ->Args({64, 512});
  }
  benchmark::RegisterBenchmark("generate/cross-ud", generate_for_links, "cross-ud", Sharing::pair)
      ->Args({1024, 4096})
      ->Iterations(1);
  benchmark::RegisterBenchmark("exponent_over_microbatches/cross-ud", find_exponent, "cross-ud",
                               false)
      ->Iterations(1);
  benchmark::RegisterBenchmark("exponent_over_stages/cross-ud", find_exponent, "cross-ud", true)
      ->Iterations(1);
}

void register_cells() {
  for (const Generator& generator : generators()) {
    if (generator.timetable == nullptr) continue;
    const std::string name{generator.name};
    benchmark::RegisterBenchmark(("generate_cells/" + name).c_str(), generate_cells, name)
        ->Arg(4)
        ->Arg(50)
        ->Unit(benchmark::kMillisecond);
  }
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

/// Every static schedule and every one that knows the links is valid, and its CSV reads back.
void check() {
  const Scenario scenario = across_datacenters(4, 8, Sharing::pair);
  const auto all = static_schedule_names();
  std::vector<std::string> names{all.begin(), all.end()};
  names.insert(names.end(), {"cross-ud", "cross-ud-sub", "cross-wave"});
  for (const std::string& name : names) {
    Scenario roomy = scenario;
    roomy.memory.budget = 2;  // ZB-H2 and interleaved schedules take more than 1F1B
    const Schedule schedule = generate(name, roomy);
    bench::expect(!first_violation(schedule, roomy), name + " is valid");
    bench::expect(read_csv(write_csv(schedule), "schedule.csv", name) == schedule,
                  name + " reads back");
  }
}

}  // namespace
}  // namespace longhaul

int main(int argc, char** argv) {
  longhaul::register_all();
  longhaul::register_greedy();
  longhaul::register_cells();
  return longhaul::bench::run_kernels(argc, argv, longhaul::check);
}
