#include "schedule/schedule.hpp"

namespace longhaul {

std::vector<int> chunks_on(const Schedule& schedule, int device) {
  std::vector<int> chunks;
  for (std::size_t chunk = 0; chunk < schedule.device_of_chunk.size(); ++chunk) {
    if (schedule.device_of_chunk[chunk] == device) chunks.push_back(static_cast<int>(chunk));
  }
  return chunks;
}

}  // namespace longhaul
