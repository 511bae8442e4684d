#pragma once

#include <cstddef>
#include <memory>

#include "comm/group/communicator.hpp"

namespace longhaul::comm {

/// Zeroed memory that the ranks of one host share. Its name is gone before the constructor returns,
/// so nothing is left over however the ranks end. Ranks that are threads share their process's.
class SharedMemory {
public:
  /// Collective over `host`, the communicator of one host's ranks.
  SharedMemory(const Communicator& host, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }

private:
  std::shared_ptr<void> of_threads_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace longhaul::comm
