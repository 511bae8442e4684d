#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/listed_enum.hpp"
#include "base/units.hpp"
#include "profile/calibration.hpp"
#include "profile/machine.hpp"
#include "profile/operator_graph.hpp"
#include "profile/training_row.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::planner {

/// The orders that a layout may have, in the order in which ties are decided: static ones, then
/// those that are made for the times and links of the layout (AwareOrder).
#define LONGHAUL_LAYOUT_ORDERS(X)    \
  X(gpipe, "gpipe")                  \
  X(one_f_one_b, "1f1b")             \
  X(interleaved, "interleaved-1f1b") \
  X(zb_h1, "zb-h1")                  \
  X(zb_h2, "zb-h2")                  \
  X(zbv, "zbv")                      \
  X(cross_ud, "cross-ud") X(cross_wave, "cross-wave") X(atlas, "atlas") X(best, "best")
LONGHAUL_LISTED_ENUM(LayoutOrder, LONGHAUL_LAYOUT_ORDERS);

[[nodiscard]] constexpr bool knows_links(LayoutOrder order) {
  return order >= LayoutOrder::cross_ud;
}
/// Two chunks a device, there and back.
[[nodiscard]] constexpr bool is_wave(LayoutOrder order) {
  return order == LayoutOrder::zbv || order == LayoutOrder::cross_wave;
}
/// May the backward pass of the order be split into D and W?
[[nodiscard]] constexpr bool splits_backward(LayoutOrder order) {
  return order >= LayoutOrder::zb_h1 && order != LayoutOrder::atlas;
}
/// May it compute again before the gradient is there?
[[nodiscard]] constexpr bool recomputes_ahead(LayoutOrder order) {
  return order >= LayoutOrder::atlas;
}

/// What lies apart where a layout uses several datacenters.
#define LONGHAUL_SITE_SPLITS(X) X(stages, "stages") X(replicas, "replicas")
LONGHAUL_LISTED_ENUM(SiteSplit, LONGHAUL_SITE_SPLITS);

/// Datacenters that a layout uses, in the order of the scenario: one alone, or several that share
/// its stages (or replicas) evenly, the first ones one more.
struct SiteChoice {
  std::vector<int> sites;  ///< indices into LayoutProblem::sites
  SiteSplit split = SiteSplit::stages;
  friend bool operator==(const SiteChoice&, const SiteChoice&) = default;
};

/// Of more sites not every group is tried, and rings over them are played step by step.
inline constexpr std::size_t kMostGroupedSites = 6;

/// GPUs of the largest layout.
inline constexpr std::int64_t kMostGpusOfLayout = 1 << 20;

/// How one training run is divided. The order of members is that of ties: of two layouts that take
/// the same time on as many GPUs the lesser one counts.
struct Layout {
  int tensor = 1, data = 1, pipeline = 1;
  int micro_batch = 1;
  int chunks = 1;
  LayoutOrder order = LayoutOrder::one_f_one_b;
  RecomputeKind recompute = RecomputeKind::none;
  profile::ShardingKind sharding = profile::ShardingKind::none;
  int placing = 0;  ///< index into LayoutProblem::placings
  [[nodiscard]] std::int64_t gpus() const { return std::int64_t{tensor} * data * pipeline; }
  friend auto operator<=>(const Layout&, const Layout&) = default;
};

struct LayoutSite {
  std::string name;
  std::optional<int> gpus;
  double price = 1;  ///< of a GPU here, over that of the dearest site
};

/// A link between two sites; none: latency and transfer take no time.
struct SiteLink {
  Duration latency{};
  Bandwidth bandwidth;
};

/// What is to be trained, and where.
struct LayoutProblem {
  profile::TrainingRow model;  ///< model, machine, global batch, attention; the layout is ignored
  const profile::Machine* machine = nullptr;
  profile::ParameterValues values;
  /// Of a calibration: 90% of measured times lie between these times the predicted one.
  std::optional<std::pair<double, double>> interval;
  profile::Extrapolation extrapolation = profile::Extrapolation::refused;
  std::optional<Bytes> memory;  ///< of a GPU; nullopt: layouts need not fit
  std::vector<LayoutSite> sites{LayoutSite{"local", std::nullopt}};
  std::vector<std::vector<SiteLink>> links{};  ///< by site and site
  std::vector<SiteChoice> placings{SiteChoice{{0}, SiteSplit::stages}};
  /// Pipelines that lend each other their ways between nodes of a site where stages lie in several
  /// sites: messages there are as many times faster.
  int lending = 1;
  [[nodiscard]] bool is_spread(const Layout& layout) const {
    return placings[static_cast<std::size_t>(layout.placing)].sites.size() > 1;
  }
  [[nodiscard]] bool has_one_price() const {
    return std::ranges::all_of(sites, [](const LayoutSite& site) { return site.price == 1; });
  }
};

/// The datacenter of each stage; with replicas in several the first of them.
[[nodiscard]] std::vector<int> sites_of_stages(const LayoutProblem& problem, const Layout& layout);

/// The training row of a layout.
[[nodiscard]] profile::TrainingRow row_of(const LayoutProblem& problem, const Layout& layout);

/// What a layout takes of each site; index: LayoutProblem::sites.
[[nodiscard]] std::vector<int> gpus_of_sites(const LayoutProblem& problem, const Layout& layout);
/// Its GPUs, each counted by the price of its site: with one price as many as there are.
[[nodiscard]] double priced_gpus(const LayoutProblem& problem, const Layout& layout);

/// Why no layout with these counts can be run: one of a fixed list of words, as "heads"; empty:
/// it can. Memory is asked by fits_memory().
[[nodiscard]] std::string_view why_no_layout(const LayoutProblem& problem, const Layout& layout);

/// Bytes of the GPU that holds most; of an order that knows the links the least that it needs.
[[nodiscard]] Bytes memory_of(const LayoutProblem& problem, const Layout& layout);
/// Activations that may be in flight on it, in activations of its stage: orders that know the links
/// have as many as its memory holds, from 1F1B's on and at most all microbatches.
[[nodiscard]] double in_flight(const LayoutProblem& problem, const Layout& layout);

/// The machine of a scenario that names none: an A100's (`selene`) or, by the peak rate of its
/// model, an H100's.
[[nodiscard]] std::string_view usual_machine(const Model& model);

/// The training row of a model, without a layout: decoder layers alone count.
[[nodiscard]] profile::TrainingRow row_of_model(const Model& model, std::string_view machine,
                                                int global_batch);

/// What a scenario says of a search: its model, global batch (what its M, replicas and micro-batch
/// make), datacenters with their GPUs and links. Several datacenters: each alone, and each
/// group of them in the order of the file, by stages and by replicas; of more than
/// kMostGroupedSites the largest alone, and the first 2, 4, 8, ... and all by replicas. Throws
/// Error where there is no model, no link between two datacenters, or something that the times of
/// layouts leave out: links that are shared or change, [[node]], speeds.
[[nodiscard]] LayoutProblem layout_problem(const Scenario& scenario,
                                           const profile::Machine& machine,
                                           const profile::Calibration& calibration);

}  // namespace longhaul::planner
