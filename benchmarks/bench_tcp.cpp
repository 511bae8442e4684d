// What do TCP connections get out of a long way? Real sockets between two network namespaces; one
// connection falls as 1 / latency, several reach the node's cap (Atlas, table 1 and figure 5).
#include <filesystem>
#include <ostream>

#include <nlohmann/json.hpp>

#include "base/program/program.hpp"
#include "harness/tcp/tcp_run.hpp"
#include "report/record_file.hpp"
#include "wan_emulator/program.hpp"

namespace longhaul::bench {
namespace {

void require_free(const std::filesystem::path& directory) {
  std::error_code problem;
  if (std::filesystem::exists(directory, problem) && !std::filesystem::is_empty(directory, problem))
    fail(
        "{} exists and is not empty (results are never overwritten). Give --out another directory.",
        directory.string());
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  report::write_new_file(file, [&](std::ostream& out) { out << text; });
}

/// Small enough for a ceiling far below that of two busy cores.
void make_tiny(harness::TcpOptions& options) {
  options.latencies = "10ms,30ms";
  options.cap = "500Mbps";
  options.window = "750kB";
  options.scale = "1";
  options.warmup = "700ms";
  options.measured = "1s";
  options.repetitions = 3;  // one that the machine disturbs does not decide
}

int main_of(int argc, char** argv) {
  harness::TcpOptions options;
  Arguments arguments{
      "Rates of real TCP connections over an emulated WAN (wan_tun), and their shape over "
      "latency."};
  harness::declare(arguments, options);
  arguments.footer(
      "For example:\n  build/bin/bench_tcp --check\n"
      "Exit codes: 0 fine, 1 the shape is not there (--check), 2 bad input, 3 the run failed, 77 "
      "not possible here (needs root and /dev/net/tun), 128 + the signal that ended it.");
  if (const auto code = wan_emulator::parse_arguments(arguments, argc, argv)) return *code;
  options.command_line =
      report::shell_text("bench_tcp", std::vector<std::string>(argv + 1, argv + argc));
  if (options.check) make_tiny(options);
  const harness::TcpSettings settings = harness::settings_of(options);
  if (!options.out.empty()) require_free(options.out);
  if (const auto code = wan_emulator::skipped("bench_tcp")) return *code;

  std::vector<nlohmann::ordered_json> looks{harness::machine_now()};
  const auto steps =
      static_cast<std::int64_t>(1 + settings.latencies.size() * settings.connections.size());
  Progress progress{"bench_tcp", steps};
  std::int64_t step = 0;
  const harness::TcpRun run = harness::measure_points(settings, [&](const std::string& what) {
    progress.update(step++, what);
    looks.push_back(harness::machine_now());
  });
  const nlohmann::ordered_json record = harness::record_of(run, options, looks);
  fmt::print("{}", options.json ? record.dump(2) + "\n" : harness::table_of(run));
  if (!options.out.empty()) {
    write_file(options.out / "tcp.csv", harness::csv_of(run));
    write_file(options.out / "record.json", record.dump(2) + "\n");
  }
  return options.check && !harness::shape_of(run).holds ? static_cast<int>(ExitCode::answer_is_no)
                                                        : 0;
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::run_program([&] { return longhaul::bench::main_of(argc, argv); });
}
