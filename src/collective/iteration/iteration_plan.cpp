#include "collective/iteration/iteration_plan.hpp"

#include <utility>

namespace longhaul::collective {

OperationId StageWork::add(Operation operation) {
  return operations.push_back(std::move(operation));
}

CommunicationId StageWork::add(Communication communication) {
  issue.push_back(communications.push_back(std::move(communication)));
  return issue.back();
}

IndexedVector<OperationId, std::uint32_t> StageWork::positions() const {
  IndexedVector<OperationId, std::uint32_t> positions(static_cast<int>(operations.size()));
  for (std::uint32_t i = 0; i < order.size(); ++i) positions[order[i]] = i;
  return positions;
}

}  // namespace longhaul::collective
