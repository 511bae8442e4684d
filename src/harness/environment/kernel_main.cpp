#include "harness/environment/kernel_main.hpp"

#include <benchmark/benchmark.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "harness/environment/host_facts.hpp"
#include "harness/environment/run_facts.hpp"

namespace longhaul::bench {
namespace {

void add_context(const std::string& prefix, const nlohmann::json& facts) {
  for (const auto& [key, value] : facts.items())
    benchmark::AddCustomContext(prefix + key,
                                value.is_string() ? value.get<std::string>() : value.dump());
}

int run_check(const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(error.code());
  }
  fmt::print("check: ok\n");
  return 0;
}

}  // namespace

void expect(bool holds, std::string_view what) {
  if (!holds)
    throw Error{fmt::format("{} does not hold (the kernel is wrong). Run the tests.", what),
                ExitCode::answer_is_no};
}

int run_kernels(int argc, char** argv, const std::function<void()>& check) {
  if (argc == 2 && std::string_view{argv[1]} == "--check") return run_check(check);
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
