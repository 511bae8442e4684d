// How fast are schedules made, checked and written? P = 64, M = 1024 where names have no sizes.
#include <vector>

#include <benchmark/benchmark.h>

#include "harness/bench_scenarios/bench_scenarios.hpp"
#include "harness/environment/kernel_main.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::bench {
namespace {

using harness::add_kernel;

void generate_blocks(benchmark::State& state, const std::string& name) {
  const Scenario scenario = harness::large_scenario();
  for (auto _ : state) {
    Schedule schedule = schedule::generate(name, scenario);
    benchmark::DoNotOptimize(schedule.rows.data());
    benchmark::ClobberMemory();
  }
  state.counters["blocks/s"] =
      harness::rate(state.iterations() * harness::blocks_of(schedule::generate(name, scenario)));
}

void generate_on(benchmark::State& state, const std::string& name, const Scenario& scenario) {
  std::int64_t blocks = 0;
  for (auto _ : state) blocks += harness::blocks_of(schedule::generate(name, scenario));
  state.counters["blocks/s"] = harness::rate(blocks);
}

void generate_for_links(benchmark::State& state, const std::string& name, Sharing sharing) {
  const int stages = harness::size_of(state, 0), microbatches = harness::size_of(state, 1);
  generate_on(state, name, harness::across_datacenters(stages, microbatches, sharing));
  state.counters["process_MiB"] = harness::peak_memory_mib();
}

void generate_cells(benchmark::State& state, const std::string& name) {
  generate_on(state, name, harness::atlas_cluster(harness::size_of(state, 0)));
}

/// The time's growth as a power of the number of blocks: over microbatches at P = 64, or over
/// stages with four microbatches each; sizes at which one set of rules is run.
void find_exponent(benchmark::State& state, const std::string& name, bool over_stages) {
  std::vector<double> blocks, seconds;
  for (auto _ : state) {
    for (int scale = 1; scale <= 8; scale *= 2) {
      const int stages = over_stages ? 128 * scale : 64;
      const int microbatches = over_stages ? 4 * stages : 1024 * scale;
      const Scenario scenario = harness::across_datacenters(stages, microbatches, Sharing::pair);
      blocks.push_back(3.0 * stages * microbatches);
      seconds.push_back(harness::least_cpu_seconds(
          [&] { benchmark::DoNotOptimize(schedule::generate(name, scenario).rows.data()); }));
    }
  }
  state.counters["exponent"] = harness::growth_exponent(blocks, seconds);
}

/// Adds a benchmark of `work`(state, schedule, scenario) on the large schedule of this name.
template <typename Work>
void add_work(const std::string& name, const char* schedule_name, Work work) {
  add_kernel(name + schedule_name, [=](benchmark::State& state) {
    const Scenario scenario = harness::large_scenario();
    const Schedule schedule = schedule::generate(schedule_name, scenario);
    work(state, schedule, scenario);
    state.counters["blocks/s"] = harness::rate(state.iterations() * harness::blocks_of(schedule));
  });
}

void check_blocks(benchmark::State& state, const Schedule& schedule, const Scenario&) {
  for (auto _ : state)
    if (schedule::first_violation(schedule)) state.SkipWithError("the schedule is not valid");
}

void find_peaks(benchmark::State& state, const Schedule& schedule, const Scenario& scenario) {
  for (auto _ : state)
    benchmark::DoNotOptimize(schedule::peak_activation(schedule, scenario).data());
}

void write_blocks(benchmark::State& state, const Schedule& schedule, const Scenario&) {
  for (auto _ : state) benchmark::DoNotOptimize(schedule::write_csv(schedule).data());
}

void read_blocks(benchmark::State& state, const Schedule& schedule, const Scenario&) {
  const std::string text = schedule::write_csv(schedule);
  for (auto _ : state)
    if (schedule::read_csv(text, "schedule.csv", schedule.name) != schedule)
      state.SkipWithError("not the same");
}

/// Schedules that know the times or have a timetable.
void register_timed() {
  for (const schedule::Generator& generator : schedule::generators()) {
    if (generator.knowledge != schedule::Knowledge::times) continue;
    const std::string name{generator.name};
    const auto linked = add_kernel("generate/" + name, generate_for_links, name, Sharing::pair);
    linked->Args({8, 16})->Args({64, 512})->Args({64, 1024});
    add_kernel("generate_shared_link/" + name, generate_for_links, name, Sharing::datacenter)
        ->Args({64, 512});
  }
  const std::string ud = "cross-ud";
  const auto large = add_kernel("generate/" + ud, generate_for_links, ud, Sharing::pair);
  large->Args({1024, 4096})->Iterations(1);
  add_kernel("exponent_over_microbatches/" + ud, find_exponent, ud, false)->Iterations(1);
  add_kernel("exponent_over_stages/" + ud, find_exponent, ud, true)->Iterations(1);
  for (const schedule::Generator& generator : schedule::generators()) {
    if (generator.timetable == nullptr) continue;
    const std::string name{generator.name};
    const auto cells = add_kernel("generate_cells/" + name, generate_cells, name);
    cells->Arg(4)->Arg(50)->Unit(benchmark::kMillisecond);
  }
}

void register_static() {
  for (const std::string& name : schedule::static_schedule_names())
    add_kernel("generate/" + name, generate_blocks, name);
  for (const char* name : {"1f1b", "zb-h1", "zbv"}) {
    add_work("check/", name, check_blocks);
    add_work("peaks/", name, find_peaks);
    add_work("write_csv/", name, write_blocks);
    add_work("read_csv/", name, read_blocks);
  }
}

/// Every static schedule and every one that knows the links is valid, and its CSV reads back.
void check() {
  Scenario roomy = harness::across_datacenters(4, 8, Sharing::pair);
  roomy.memory.budget = 2;  // ZB-H2 and interleaved schedules take more than 1F1B
  std::vector<std::string> names{"cross-ud", "cross-ud-sub", "cross-wave"};
  for (const std::string& name : schedule::static_schedule_names()) names.push_back(name);
  for (const std::string& name : names) {
    const Schedule schedule = schedule::generate(name, roomy);
    const std::string text = schedule::write_csv(schedule);
    harness::expect(!schedule::first_violation(schedule, roomy), name + " is valid");
    harness::expect(schedule::read_csv(text, "a.csv", name) == schedule, name + " reads back");
  }
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  longhaul::bench::register_static();
  longhaul::bench::register_timed();
  return longhaul::harness::run_kernels(argc, argv, longhaul::bench::check);
}
