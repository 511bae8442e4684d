#pragma once

#include <cstdint>
#include <vector>

#include "prefill/placement.hpp"

namespace longhaul::prefill {

/// A queue that never empties: the requests of a file over and over, of which `waiting` wait at any
/// time, for so many iterations of a training run that went on before and goes on after them. A
/// bubble belongs to the iteration that it begins in; one that leaves the last iteration is whole,
/// which makes up for the one around the first one's begin, that earlier requests fill.
struct BacklogOptions {
  std::int64_t waiting = 512;
  std::int64_t iterations = 5;
  std::int64_t patience = 256;  ///< of best-fit: how often a request is passed over at most
};

/// The answers in the order in which they are given. A request arrives when it begins to wait: the
/// first `waiting` at time 0, each further one when a place in the queue is free. Requests that
/// still wait at the end are none of the answers.
///
/// `earliest`: requests in strict order, each placed as it arrives; a place is free as soon as one
/// starts. `best_fit`: as a bubble opens, the waiting requests that fill it best are chosen, the
/// oldest first of equally full choices. One that fits into what is left of a bubble, and sees a
/// later one placed there, is passed over; after `patience` times it goes first.
[[nodiscard]] std::vector<Decision> place_backlog(const IterationBubbles& iteration,
                                                  const std::vector<Served>& served,
                                                  const std::vector<Request>& file,
                                                  PlacementPolicy policy,
                                                  const BacklogOptions& options);

}  // namespace longhaul::prefill
