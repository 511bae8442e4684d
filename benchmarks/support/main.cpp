#include "support/main.hpp"

#include <cstdio>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "runtime/transport/mpi/session.hpp"

namespace longhaul::bench {
namespace {

void say(const std::string& text) {
  fmt::print(stderr, "longhaul: {}\n", text);
  std::fflush(stderr);
}

/// Names stand in records and traces.
void require_utf8(int argc, char** argv) {
  using nlohmann::json;
  for (int i = 0; i < argc; ++i) {
    const json word(argv[i]);
    const std::string shown = word.dump(-1, ' ', false, json::error_handler_t::replace);
    if (json::parse(shown) != word)
      throw AgreedError{fmt::format(
          "{} is no UTF-8 (records and traces hold the command line). Rename it.", shown)};
  }
}

}  // namespace

int run_main(int& argc, char**& argv, const std::function<ExitCode()>& body) {
  const mpi::Session session{argc, argv};
  try {
    return static_cast<int>(body());
  } catch (const AgreedError& error) {
    if (mpi::world_rank() == 0) say(error.what());
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    say(fmt::format("rank {}: {}", mpi::world_rank(), error.what()));
    mpi::abort_run(static_cast<int>(error.code()));
  } catch (const std::exception& error) {
    say(fmt::format("rank {}: {}", mpi::world_rank(), error.what()));
    mpi::abort_run(static_cast<int>(ExitCode::run_failed));
  }
}

std::string on_first(const mpi::Communicator& world, const std::function<std::string()>& work) {
  std::string message;  // a digit for how it went, then the text
  if (world.rank() == 0) {
    try {
      message = "0" + work();
    } catch (const Error& error) {
      message = fmt::format("{}{}", static_cast<int>(error.code()), error.what());
    }
  }
  message = world.broadcast(std::move(message));
  const int code = message.front() - '0';
  if (code != 0) throw AgreedError{message.substr(1), static_cast<ExitCode>(code)};
  return message.substr(1);
}

void agreed(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    throw AgreedError{error.what(), error.code()};
  }
}

std::optional<ExitCode> parse_arguments(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", fmt::format("{} ({})", version(), git_commit()));
  require_utf8(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {
    if (mpi::world_rank() == 0) app.exit(request);
    return ExitCode::fine;
  } catch (const CLI::ParseError& problem) {
    throw AgreedError{fmt::format("{}. See {} --help.", problem.what(), argv[0])};
  }
  return std::nullopt;
}

}  // namespace longhaul::bench
