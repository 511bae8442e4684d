#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/program/arguments.hpp"
#include "comm/group/communicator.hpp"
#include "engine/ranks.hpp"
#include "harness/environment/facts.hpp"

namespace longhaul::harness {

/// Thrown on every rank together: rank 0 prints it, and all ranks end with its exit code.
class CollectiveError : public Error {
public:
  using Error::Error;
};

/// Starts MPI, runs `body`, and makes an exit code of what comes of it. An CollectiveError ends
/// every rank in order; any other exception, on whatever rank, is printed and aborts all of them.
/// With
/// --ranks-per-process N above 1 `body` runs on N threads, each a rank; SharedOptions declares it
/// for the help, and to refuse what is no number of ranks.
[[nodiscard]] int run_main(int& argc, char**& argv, const std::function<ExitCode()>& body);

/// Runs `work` on rank 0 and hands its text to all. Its Error becomes an CollectiveError
/// everywhere.
std::string on_rank0(const comm::Communicator& world, const std::function<std::string()>& work);

/// Runs work that all ranks do, so that all ranks fail together: Error becomes CollectiveError.
void collectively(const std::function<void()>& work);

/// Runs `work`; an Error of this rank alone ends the run with the watchdog's report, which says
/// what all ranks of the host did last.
template <typename Work>
auto with_watchdog(engine::Ranks& ranks, Work&& work) {
  try {
    return work();
  } catch (const CollectiveError&) {
    throw;
  } catch (const Error& error) {
    ranks.watchdog().fail(error.what());
  }
}

/// Reads the command line; an exit code where there is nothing more to do (--help, --version). A
/// slip, or a word that is no UTF-8, becomes an CollectiveError.
[[nodiscard]] std::optional<ExitCode> parse_arguments(Arguments& arguments, int argc, char** argv);

}  // namespace longhaul::harness
