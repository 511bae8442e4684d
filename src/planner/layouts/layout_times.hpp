#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "base/vocabulary.hpp"
#include "planner/layouts/layout.hpp"
#include "planner/predict/row_slots.hpp"

namespace longhaul::planner {

/// What a layout's order takes, in whole nanoseconds: what its scenario says (scenario_text()), so
/// that both have the same makespan.
struct LayoutTimes {
  using OfChunk = std::array<Duration, static_cast<std::size_t>(kCountOf<BlockKind>)>;
  struct Border {
    Bandwidth rate;
    Duration transfer{};
    Duration latency{};
    friend bool operator==(const Border&, const Border&) = default;
  };
  int devices = 1;
  int microbatches = 1;
  std::vector<OfChunk> chunks;       ///< by chunk, then BlockKind; R is 0 where it is in B and D
  std::vector<int> device_of_chunk;  ///< by chunk
  /// Both ways over each: 2 * the lesser device, one more towards it; the last two: between both
  /// ends.
  std::vector<Border> borders;
  Bytes message;                     ///< over every border
  std::vector<Duration> reduce;      ///< of a device's gradients, after its last block
  std::vector<Duration> over_sites;  ///< share of it that sites spend on each other's sums
  std::vector<Duration> step;        ///< after that: the optimizer, the embedding's all-reduce too
  std::vector<Bytes> weights;        ///< of a GPU of each device
  bool has_recompute = false;        ///< an R stands before each B or D

  [[nodiscard]] const Border& border(int from, int to) const {
    const int low = from < to ? from : to, high = from < to ? to : from;
    const int first = 2 * (high - low == 1 ? low : devices - 1);
    return borders[static_cast<std::size_t>(first + (from > to ? 1 : 0))];
  }
  [[nodiscard]] Duration tail(int device) const {
    return reduce[static_cast<std::size_t>(device)] + step[static_cast<std::size_t>(device)];
  }
};

/// Times of the layouts of one problem. Operator graphs are made once for each (tensor,
/// micro-batch, recomputation): they depend on nothing else.
class LayoutTimer {
public:
  /// The problem outlives it.
  explicit LayoutTimer(const LayoutProblem& problem);

  /// nullptr: a product lies too far beyond the measured ones, and may not.
  [[nodiscard]] const profile::RowGraph* graph(const Layout& layout);
  /// graph() must be there. `values` of nullptr: the problem's.
  [[nodiscard]] LayoutTimes times(const Layout& layout,
                                  const profile::ParameterValues* values = nullptr);

private:
  struct Graph {
    profile::RowGraph graph;
    bool refused = false;
  };
  [[nodiscard]] Graph& made(const Layout& layout);
  /// Of `weights` bytes that replicas in many sites sum: the ring that the simulator plays.
  [[nodiscard]] Duration ring_over_sites(const Layout& layout, Bytes weights);

  const LayoutProblem& problem_;
  std::map<std::tuple<int, bool, std::int64_t>, Duration> rings_;  ///< by placing, sharding, bytes
  std::map<std::tuple<int, int, RecomputeKind>, Graph> graphs_;
};

/// Layers of each chunk, in forward order: the first ones hold those that do not divide.
[[nodiscard]] std::vector<int> layers_of_chunks(int layers, int chunks);
/// Of each chunk of an order: which device holds it.
[[nodiscard]] std::vector<int> devices_of_chunks(const Layout& layout);

}  // namespace longhaul::planner
