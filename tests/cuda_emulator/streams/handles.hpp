#pragma once

#include <cstddef>

#include <sys/types.h>

namespace longhaul::on_host {

/// Contents of a handle of cudaIpc: a file of a process without a name, and the part that counts.
struct SharedFile {
  pid_t process = 0;
  int file = -1;
  std::size_t mapped = 0, bytes = 0;
};

void write_handle(char (&reserved)[64], const SharedFile& from);
[[nodiscard]] SharedFile read_handle(const char (&reserved)[64]);
/// The file, opened here; below 0 where it belongs to this process (as CUDA refuses it) or is gone.
[[nodiscard]] int open_shared(const SharedFile& from);

}  // namespace longhaul::on_host
