#include "environment/kernel_main.hpp"

#include <benchmark/benchmark.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "environment/command_line.hpp"
#include "environment/host_facts.hpp"
#include "environment/run_facts.hpp"

namespace longhaul::bench {
namespace {

void add_context(const std::string& prefix, const nlohmann::json& facts) {
  for (const auto& [key, value] : facts.items())
    benchmark::AddCustomContext(prefix + key,
                                value.is_string() ? value.get<std::string>() : value.dump());
}

}  // namespace

int run_kernels(int argc, char** argv) {
  add_context("host_", whole_host_facts());
  add_context("program_", program_facts(command_line(argc, argv)));
  benchmark::AddCustomContext("slurm", job_facts(environment_variables()).dump());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return static_cast<int>(ExitCode::bad_input);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace longhaul::bench
