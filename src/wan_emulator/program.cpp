#include "wan_emulator/program.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/version.hpp"
#include "wan_emulator/namespaces.hpp"

namespace longhaul::wan {

int run_program(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(ExitCode::run_failed);
  }
}

std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", fmt::format("{} ({})", version(), git_commit()));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {
    return app.exit(request);
  } catch (const CLI::ParseError& problem) {
    fail("{}. See {} --help.", problem.what(), argv[0]);
  }
  return std::nullopt;
}

std::optional<int> skipped(const char* program) {
  const std::optional<std::string> reason = why_impossible();
  if (!reason) return std::nullopt;
  fmt::print(stderr, "longhaul: {} is skipped: {}.\n", program, *reason);
  return kSkipped;
}

}  // namespace longhaul::wan
