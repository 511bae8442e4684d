#include "planner/layouts/layout_times.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/index.hpp"
#include "planner/hierarchy/ring_times.hpp"
#include "scenario/model_operators.hpp"

namespace longhaul::planner {
namespace {

using profile::Parameter;
using profile::ParameterValues;
using profile::PartGraph;
using profile::RowGraph;
using profile::TrainingRow;

constexpr double kBitsPerByteAndNs = 8e9;

/// Parts of a backward pass that are not its input's gradient, on one microbatch, in ns.
struct BackwardParts {
  double weights = 0;    ///< of gradients of weights
  double recompute = 0;  ///< of the forward pass that is computed again, its collectives too
};

BackwardParts backward_parts(const PartGraph& part, const RowGraph& graph,
                             const ParameterValues& values) {
  BackwardParts parts;
  for (const profile::GraphOperator& each : part.backward)
    if (std::string_view{each.name}.ends_with("_weights"))
      parts.weights += operator_ns(each, *graph.machine, values);
  for (const profile::GraphOperator& each : part.recompute)
    parts.recompute += operator_ns(each, *graph.machine, values);
  if (part.all_reduces_recompute > 0)
    parts.recompute += part.all_reduces_recompute *
                       all_reduce_ns(graph.tensor_bytes, tensor_group(graph.row, *graph.machine),
                                     Parameter::alpha_tensor, *graph.machine, values);
  return parts;
}

/// Makes the times of one layout.
class TimesOfLayout {
public:
  using RingOverSites = std::function<Duration(Bytes)>;
  TimesOfLayout(const LayoutProblem& problem, const Layout& layout, const RowGraph& graph,
                const ParameterValues& values, RingOverSites ring)
      : problem_{problem},
        layout_{layout},
        graph_{graph},
        row_{graph.row},
        values_{values},
        ring_{std::move(ring)},
        layer_{backward_parts(graph.layer, graph, values)},
        head_{backward_parts(graph.head, graph, values)} {}

  LayoutTimes make() {
    times_.devices = layout_.pipeline;
    times_.microbatches = row_.microbatches();
    times_.has_recompute = layout_.recompute == RecomputeKind::full;
    times_.device_of_chunk = devices_of_chunks(layout_);
    add_chunks();
    add_borders();
    add_ends();
    return std::move(times_);
  }

private:
  void add_chunks() {
    const int count = static_cast<int>(times_.device_of_chunk.size());
    layers_ = layers_of_chunks(row_.layers, count);
    // But for the ends and the layers that do not divide chunks are equal: four slots in all.
    std::vector<Slot> slots;
    std::vector<std::size_t> slot_of(at(count));
    for (int chunk = 0; chunk < count; ++chunk) {
      Slot slot{.layers = double(layers_[at(chunk)]),
                .embedding = chunk == 0,
                .head = chunk + 1 == count,
                .overheads = 0.5 * layout_.pipeline / count};
      const auto same = [&](const Slot& other) {
        return other.layers == slot.layers && other.embedding == slot.embedding &&
               other.head == slot.head;
      };
      slot_of[at(chunk)] =
          static_cast<std::size_t>(std::find_if(slots.begin(), slots.end(), same) - slots.begin());
      if (slot_of[at(chunk)] == slots.size()) slots.push_back(slot);
    }
    const std::vector<LayoutTimes::OfChunk> known = of_slots(slots);
    times_.chunks.reserve(at(count));
    for (const std::size_t slot : slot_of) times_.chunks.push_back(known[slot]);
  }

  std::vector<LayoutTimes::OfChunk> of_slots(std::vector<Slot> slots) {
    const std::size_t count = slots.size();
    for (std::size_t i = 0; i < count; ++i) {
      Slot backward = slots[i];
      backward.kind = SlotKind::backward;
      slots.push_back(backward);
    }
    const std::vector<SlotTime> spent = slot_times(slots, graph_, values_);
    std::vector<LayoutTimes::OfChunk> all;
    for (std::size_t i = 0; i < count; ++i) {
      const Slot& slot = slots[i];
      const Duration whole = spent[count + i].total();
      const Duration again =
          times_.has_recompute
              ? rounded(slot.layers * layer_.recompute + (slot.head ? head_.recompute : 0))
              : Duration{};
      const double weights = slot.layers * layer_.weights + (slot.head ? head_.weights : 0);
      const Duration wgrad = std::min(rounded(weights), whole - again);
      LayoutTimes::OfChunk of{};
      of[index(BlockKind::F)] = spent[i].total();
      of[index(BlockKind::B)] = whole - again;
      of[index(BlockKind::D)] = whole - again - wgrad;
      of[index(BlockKind::W)] = wgrad;
      of[index(BlockKind::R)] = again;
      all.push_back(of);
    }
    return all;
  }

  static Duration rounded(double ns) { return Duration{std::llround(ns)}; }

  /// The rate at which a message between two stages is sent: as profile::message_ns().
  [[nodiscard]] Bandwidth rate_inside(int border) const {
    const profile::Machine& machine = *graph_.machine;
    const int lending = problem_.is_spread(layout_) ? problem_.lending : 1;
    const double bytes_per_ns =
        border_leaves_node(row_, machine, border)
            ? machine.node_bytes_per_ns * lending * values_[Parameter::alpha_pipeline] /
                  machine.gpus_per_node
            : machine.gpu.link_bytes_per_ns * values_[Parameter::nvlink_rate];
    return Bandwidth{bytes_per_ns * kBitsPerByteAndNs};
  }

  void add_borders() {
    times_.message = Bytes{std::llround(graph_.message_bytes)};
    const std::vector<int> site = sites_of_stages(problem_, layout_);
    for (int i = 0; i < layout_.pipeline; ++i) {
      const int next = (i + 1) % layout_.pipeline;
      const auto [low, high] = std::minmax(i, next);
      const Bandwidth rate = rate_inside(i);
      times_.borders.push_back(border_between(site[at(low)], site[at(high)], rate));
      times_.borders.push_back(border_between(site[at(high)], site[at(low)], rate));
    }
  }

  /// One way; `rate`: that of a message inside a site.
  [[nodiscard]] LayoutTimes::Border border_between(int from, int to, Bandwidth rate) const {
    LayoutTimes::Border border{rate, {}, rounded(values_[Parameter::message_time])};
    if (from != to) {
      const SiteLink& link = problem_.links[at(from)][at(to)];
      border = {link.bandwidth, {}, link.latency};
    }
    border.transfer = times_.message / border.rate;
    return border;
  }

  /// Gradients over the sites: a ring of one member a site, after the sum inside each.
  [[nodiscard]] Duration over_sites(double bytes) const {
    const SiteChoice& choice = problem_.placings[at(layout_.placing)];
    const auto count = static_cast<std::int64_t>(choice.sites.size());
    if (count < 2 || choice.split == SiteSplit::stages) return {};
    if (choice.sites.size() > kMostGroupedSites) return ring_(Bytes{std::llround(bytes)});
    Duration latency{};
    Bandwidth rate;
    for (std::size_t i = 0; i < choice.sites.size(); ++i) {
      const int to = choice.sites[(i + 1) % choice.sites.size()];
      const SiteLink& link = problem_.links[at(choice.sites[i])][at(to)];
      latency = std::max(latency, link.latency);
      rate = std::min(rate, link.bandwidth);
    }
    return Bytes{std::llround(bytes)} * (2 * (count - 1)) / count / rate +
           2 * (count - 1) * latency;
  }

  /// Buckets leave beside the last B, of the device's first chunk; of a backward that is split, at
  /// the end.
  [[nodiscard]] Slot reduction_of(int device, double weights) const {
    if (splits_backward(layout_.order)) return {.kind = SlotKind::reduce, .weights = weights};
    const bool has_head = at(device) + 1 == layers_.size();
    return {.kind = SlotKind::reduce,
            .layers = double(layers_[at(device)]),
            .embedding = device == 0,
            .head = has_head,
            .weights = weights};
  }

  void add_ends() {
    const int count = layout_.pipeline;
    std::vector<Slot> slots;
    std::vector<int> of_device(at(count));
    for (std::size_t chunk = 0; chunk < layers_.size(); ++chunk)
      of_device[at(times_.device_of_chunk[chunk])] += layers_[chunk];
    const int last = times_.device_of_chunk.back();
    for (int device = 0; device < count; ++device) {
      const bool embeds = device == 0 || device == last;
      const double weights = layer_weights_of_gpu(row_, of_device[at(device)]) +
                             (embeds ? embedding_weights_of_gpu(row_) : 0);
      slots.push_back(reduction_of(device, weights));
      slots.push_back({.kind = SlotKind::step, .weights = weights});
    }
    slots.push_back({.kind = SlotKind::tied, .weights = embedding_weights_of_gpu(row_)});
    const std::vector<SlotTime> spent = slot_times(slots, graph_, values_);
    for (int device = 0; device < count; ++device) {
      const std::size_t first = 2 * at(device);
      const double bytes = 2 * slots[first].weights;
      const bool ties = last != 0 && (device == 0 || device == last);
      times_.over_sites.push_back(over_sites(bytes));
      times_.reduce.push_back(spent[first].total() + times_.over_sites.back());
      times_.step.push_back(spent[first + 1].total() + (ties ? spent.back().total() : Duration{}));
      times_.weights.push_back(Bytes{std::llround(bytes)});
    }
  }

  const LayoutProblem& problem_;
  const Layout& layout_;
  const RowGraph& graph_;
  const TrainingRow& row_;
  const ParameterValues& values_;
  RingOverSites ring_;
  BackwardParts layer_, head_;
  std::vector<int> layers_;
  LayoutTimes times_;
};

}  // namespace

std::vector<int> layers_of_chunks(int layers, int chunks) {
  return scenario::evenly(layers, chunks);
}

std::vector<int> devices_of_chunks(const Layout& layout) {
  const int p = layout.pipeline;
  std::vector<int> devices(to_size(p * layout.chunks));
  for (int chunk = 0; chunk < p * layout.chunks; ++chunk)
    devices[at(chunk)] = is_wave(layout.order) ? std::min(chunk, 2 * p - 1 - chunk) : chunk % p;
  return devices;
}

LayoutTimer::LayoutTimer(const LayoutProblem& problem) : problem_{problem} {}

LayoutTimer::Graph& LayoutTimer::made(const Layout& layout) {
  const auto [found, is_new] =
      graphs_.try_emplace({layout.tensor, layout.micro_batch, layout.recompute});
  if (!is_new) return found->second;
  Graph& graph = found->second;
  graph.graph = profile::row_graph(row_of(problem_, layout), *problem_.machine,
                                   profile::Extrapolation::allowed);
  graph.refused = graph.graph.beyond > profile::kFarthest &&
                  problem_.extrapolation == profile::Extrapolation::refused;
  return graph;
}

const RowGraph* LayoutTimer::graph(const Layout& layout) {
  const Graph& graph = made(layout);
  return graph.refused ? nullptr : &graph.graph;
}

LayoutTimes LayoutTimer::times(const Layout& layout, const ParameterValues* values) {
  RowGraph& graph = made(layout).graph;
  TrainingRow& row = graph.row;  // what else the row says is of the problem
  row.data = layout.data;
  row.pipeline = layout.pipeline;
  row.chunks = layout.chunks;
  row.sharding = layout.sharding;
  const auto ring = [&](Bytes weights) { return ring_over_sites(layout, weights); };
  return TimesOfLayout{problem_, layout, graph, values == nullptr ? problem_.values : *values, ring}
      .make();
}

/// Gathers come before the first block, so that what is divided is played as two collectives.
Duration LayoutTimer::ring_over_sites(const Layout& layout, Bytes weights) {
  const bool divided = layout.sharding != profile::ShardingKind::none;
  const auto [found, is_new] =
      rings_.try_emplace({layout.placing, divided, weights.count()}, Duration{});
  Duration& total = found->second;
  if (!is_new || weights < Bytes{1}) return total;
  const std::vector<int>& sites = problem_.placings[at(layout.placing)].sites;
  std::vector<RingLink> links;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const SiteLink& link = problem_.links[at(sites[i])][at(sites[(i + 1) % sites.size()])];
    links.push_back({link.bandwidth, link.latency});
  }
  RingPlayer ring;
  const auto add = [&](CollectiveKind kind) {
    RingTimes times{std::vector<Duration>(sites.size()), {}, {}};
    ring.play(kind, weights, links, times);
    total += std::ranges::max(times.over);
  };
  if (!divided) add(CollectiveKind::all_reduce);
  if (divided) add(CollectiveKind::all_gather);
  if (divided) add(CollectiveKind::reduce_scatter);
  return total;
}

}  // namespace longhaul::planner
