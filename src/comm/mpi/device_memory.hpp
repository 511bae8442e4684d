#pragma once

namespace longhaul::mpi {

/// Does this MPI say that it takes memory of CUDA devices in its calls? Debian's does not.
[[nodiscard]] bool takes_device_memory();

}  // namespace longhaul::mpi
