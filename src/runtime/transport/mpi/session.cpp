#include "runtime/transport/mpi/session.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <mpi.h>

#include "runtime/transport/mpi/check.hpp"

namespace longhaul::mpi {

Session::Session(int& argc, char**& argv) {
  int provided = 0;
  check(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));
}

Session::~Session() { MPI_Finalize(); }

int world_rank() {
  int rank = 0;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  return rank;
}

void abort_run(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
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

}  // namespace longhaul::mpi
