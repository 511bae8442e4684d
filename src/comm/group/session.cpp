#include "comm/group/session.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <mpi.h>

#include "base/error.hpp"
#include "base/version.hpp"
#include "comm/blocking_call.hpp"
#include "comm/group/thread_group.hpp"

namespace longhaul::comm {
namespace {

/// Before main: Open MPI that starts without a launcher sets one of them itself.
const bool is_launched = [] {
  constexpr std::array kNames{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
  return std::ranges::any_of(kNames, [](const char* name) { return std::getenv(name) != nullptr; });
}();

}  // namespace

Session::Session(int& argc, char**& argv, Duration longest_start) {
  const BlockingCall guard{"the ranks to start (MPI_Init)", longest_start};
  int provided = 0;
  check(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));
}

/// It waits for every rank: one that is stopped now must not keep the others forever.
Session::~Session() {
  const BlockingCall guard{"the ranks to leave MPI", std::chrono::seconds{30}};
  MPI_Finalize();
}

bool was_launched() { return is_launched; }

int processes() {
  int size = 0;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size));
  return size;
}

int world_rank() {
  if (const ThreadRank* thread = this_thread_rank()) return thread->rank;
  int rank = 0;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  return rank;
}

void set_idle_look(IdleLook what) {
  // Not in mpi.h, but exported by Open MPI 1.5 to 5.
  using SetYield = bool (*)(bool);
  static const auto set_yield =
      reinterpret_cast<SetYield>(dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle"));
  static const bool told_to_share = [] {
    const char* value = std::getenv("OMPI_MCA_mpi_yield_when_idle");
    return value != nullptr && std::string_view{value} == "1";
  }();
  if (set_yield != nullptr && told_to_share) set_yield(what == IdleLook::give_way);
}

void abort_run(int exit_code) {
  // Threads are all of the run, and not all of them may call MPI.
  if (!has_thread_ranks()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length));
  std::string version{text.data()};
  std::ranges::replace(version, '\n', ' ');
  return version.substr(0, version.find(", package"));
}

void check(int code, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error{fmt::format("MPI failed at {} ({}). See the ranks' messages above.",
                          source_place(where), text.data()),
              ExitCode::run_failed};
}

}  // namespace longhaul::comm
