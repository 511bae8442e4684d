#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "plan/network/network.hpp"
#include "scenario/scenario.hpp"
#include "schedule/placement.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// How messages cross one chunk boundary in one direction. Without resources: on one device.
struct RelaxedHop {
  Duration transfer{};
  Duration latency{};
  std::vector<ResourceId> resources;
};

/// A chunk of the relaxed problem in which bounds are computed. It forgets which microbatch is
/// which and keeps counts: the k-th F of a chunk needs k Fs of the chunk before it, and so on. A
/// schedule of the class becomes one of the relaxed problem that ends no later:
///  - A backward block becomes a `gradient` of min(D, B) and, after it, a `weight` of what the
///    cheaper of D + W and B leaves. Both fit into the time that the block had; the gradient ends
///    no later than the block, and memory is released no later.
///  - Blocks of one kind and chunk are equal, so their time on the device may be given to them
///    first come, first served: for every k, the k-th ends no later and the k-th starts no earlier.
///    Hence parts of blocks may be taken as whole blocks that others interrupt.
struct RelaxedChunk {
  DeviceId device{};
  int count = 0;  ///< microbatches that run through it
  Duration forward{}, gradient{}, weight{};
  Duration dgrad{}, wgrad{}, backward{};  ///< of a D, W and B as they are
  bool recomputed = false;
  Duration recompute{};
  /// Of weights: until they have come at the earliest, and how long the device's next gather must
  /// wait for it.
  Duration gather{}, gathering{};
  /// Of gradients: from its last W at least until it has ended everywhere, and on its device.
  Duration reduction{}, reducing{};
  Bytes taken;  ///< activation memory held from the start of F, at least, until
  Bytes rest;   ///< the gradient's end; `rest` of it until the end of the weight
  RelaxedHop next, previous;
};

/// One replica of a schedule of the layout of `like`.
struct RelaxedReplica {
  std::vector<RelaxedChunk> chunks;
};

/// All replicas, and the resources that their messages need.
struct Relaxation {
  int devices = 0;
  int chunks_of_copy = 0;
  Bytes limit;  ///< of activation memory, on every device
  std::vector<RelaxedReplica> replicas;
  IndexedVector<ResourceId, std::string> resource_names;

  [[nodiscard]] IdRange<DeviceId> device_ids() const { return ids<DeviceId>(devices); }
};

/// Recomputes the chunks that have an R in `like`; where `like` has no blocks of a chunk, if the
/// scenario says so.
[[nodiscard]] Relaxation relax(const Schedule& like, const Scenario& scenario);

/// Which schedules a bound holds for, in words: "ud placement, whole blocks or parts, budget 1, not
/// recomputed".
class ClassOfBound {
public:
  void add(const Schedule& layout, const Relaxation& relaxed);
  [[nodiscard]] std::string text(double budget) const;

private:
  std::map<std::string, std::set<schedule::Placement>>
      placements_;  ///< by what else the class says
};

}  // namespace longhaul::planner
