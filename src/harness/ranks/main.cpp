#include "harness/ranks/main.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>

#include <nlohmann/json.hpp>

#include "base/program/command_words.hpp"
#include "base/unit_text.hpp"
#include "base/version.hpp"
#include "comm/group/session.hpp"
#include "comm/group/thread_group.hpp"
#include "harness/environment/shared_options.hpp"

namespace longhaul::harness {
namespace {

void say(const std::string& text) {
  fmt::print(stderr, "longhaul: {}\n", text);
  std::fflush(stderr);
}

/// Names are part of records and traces.
void require_utf8(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) {
    const nlohmann::json word(argv[i]);
    const std::string shown = word.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (nlohmann::json::parse(shown) != word)
      throw CollectiveError{fmt::format(
          "{} is no UTF-8 (records and traces hold the command line). Rename it.", shown)};
  }
}

/// The value of an option before the line is read as a whole, which the ranks do; nullptr: none.
const char* early_value(int argc, char** argv, const char* option) {
  const std::size_t length = std::strlen(option);
  const char* value = nullptr;
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    if (std::strncmp(argv[i], option, length) != 0) continue;
    if (argv[i][length] == '=')
      value = argv[i] + length + 1;
    else if (argv[i][length] == '\0' && i + 1 < argc)
      value = argv[i + 1];
  }
  return value;
}

/// An invalid value is refused when the line is read.
int asked_ranks_per_process(int argc, char** argv) {
  const char* const text = early_value(argc, argv, kRanksPerProcess);
  if (text == nullptr) return 1;
  int number = 0;
  const char* const end = text + std::strlen(text);
  const auto [at, problem] = std::from_chars(text, end, number);
  const bool fits = problem == std::errc{} && at == end;
  return fits && number >= 1 && number <= kMostRanksPerProcess ? number : 1;
}

/// How long MPI may take to start: on many hosts, seconds beyond the deadline.
Duration longest_start(int argc, char** argv) {
  using namespace std::chrono_literals;
  Duration deadline = engine::WatchdogOptions{}.deadline;
  if (const char* const text = early_value(argc, argv, "--deadline")) {
    try {
      deadline = std::clamp(parse_duration(text), Duration::zero(), Duration{24h});
    } catch (const Error&) {  // refused when the line is read
    }
  }
  return deadline + 30s;
}

/// The line asks for a text, and no launcher made a rank of this process: MPI need not start.
bool is_question(int argc, char** argv) {
  if (comm::was_launched()) return false;
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i)
    for (const char* const asking : {"-h", "--help", "--version"})
      if (std::strcmp(argv[i], asking) == 0) return true;
  return false;
}

/// A rank from here on.
int run_rank(const std::function<ExitCode()>& body) {
  try {
    return static_cast<int>(body());
  } catch (const CollectiveError& error) {
    if (comm::world_rank() == 0) say(error.what());
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    say(fmt::format("rank {}: {}", comm::world_rank(), error.what()));
    comm::abort_run(static_cast<int>(error.code()));
  } catch (const std::exception& error) {
    say(fmt::format("rank {}: {}", comm::world_rank(), error.what()));
    comm::abort_run(static_cast<int>(ExitCode::run_failed));
  }
}

}  // namespace

int run_main(int& argc, char**& argv, const std::function<ExitCode()>& body) {
  if (is_question(argc, argv)) {
    int code = 0;
    comm::run_thread_ranks(1, [&] { code = run_rank(body); });
    return code;
  }
  const comm::Session session{argc, argv, longest_start(argc, argv)};
  const int ranks = asked_ranks_per_process(argc, argv);
  if (ranks == 1) return run_rank(body);
  if (comm::processes() > 1) {
    if (comm::world_rank() == 0)
      say(fmt::format(
          "{} {} on {} processes (threads are the ranks of one process alone). Start "
          "one, with all ranks in it: scripts/mpi -n 1 ... {} {}.",
          kRanksPerProcess, ranks, comm::processes(), kRanksPerProcess, ranks * comm::processes()));
    return static_cast<int>(ExitCode::bad_input);
  }
  std::atomic<int> code = 0;
  comm::run_thread_ranks(ranks, [&] {
    const int mine = run_rank(body);
    if (comm::world_rank() == 0) code = mine;
  });
  return code;
}

std::string on_rank0(const comm::Communicator& world, const std::function<std::string()>& work) {
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
  if (code != 0) throw CollectiveError{message.substr(1), static_cast<ExitCode>(code)};
  return message.substr(1);
}

void collectively(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    throw CollectiveError{error.what(), error.code()};
  }
}

std::optional<ExitCode> parse_arguments(Arguments& arguments, int argc, char** argv) {
  arguments.version(fmt::format("{} ({})", version(), git_commit()));
  require_utf8(argc, argv);
  try {
    const std::optional<std::string> text = parse_words(arguments, argc, argv);
    if (!text) return std::nullopt;
    if (comm::world_rank() == 0) fmt::print("{}", *text);
    return ExitCode::fine;
  } catch (const Error& problem) {
    throw CollectiveError{problem.what(), problem.code()};
  }
}

}  // namespace longhaul::harness
