#include "comm/group/check.hpp"

#include <array>

#include "base/error.hpp"

namespace longhaul::comm {

void check(int code, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error{fmt::format("MPI failed at {}:{} ({}). See the ranks' messages above.",
                          where.file_name(), where.line(), text.data()),
              ExitCode::run_failed};
}

}  // namespace longhaul::comm
