#include "host/rank_accelerator.hpp"

#include <algorithm>

#include "cuda/accelerator.hpp"

namespace longhaul {

int accelerator_of(const Board& board) {
  const int devices = static_cast<int>(accelerators().size());
  const auto at = std::ranges::find(board.local(), board.self());
  const int place = static_cast<int>(at - board.local().begin());
  const int ranks = board.local_ranks();
  if (devices == 0) return 0;
  return devices >= ranks ? place : place * devices / ranks;
}

}  // namespace longhaul
