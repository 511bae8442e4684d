#include "planner/layouts/layout.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "profile/row_memory.hpp"
#include "scenario/model_operators.hpp"

namespace longhaul::planner {
namespace {

using profile::RowSchedule;
using profile::TrainingRow;

/// The schedule that rows of training runs know; of split backwards 1F1B's, whose counts they have.
RowSchedule row_schedule(const Layout& layout) {
  if (layout.pipeline == 1) return RowSchedule::accumulate;
  if (layout.order == LayoutOrder::gpipe) return RowSchedule::gpipe;
  if (layout.order == LayoutOrder::interleaved) return RowSchedule::interleaved;
  return RowSchedule::one_f_one_b;
}

/// A site holds its share of the ranks.
bool sites_are_large_enough(const LayoutProblem& problem, const Layout& layout) {
  const SiteChoice& choice = problem.placings[at(layout.placing)];
  const std::vector<int> used = gpus_of_sites(problem, layout);
  return std::ranges::all_of(choice.sites, [&](int site) {
    const std::optional<int>& gpus = problem.sites[at(site)].gpus;
    return used[at(site)] > 0 && (!gpus || used[at(site)] <= *gpus);
  });
}

std::string_view why_no_order(const Layout& layout, int microbatches) {
  const bool has_chunks = layout.order == LayoutOrder::interleaved;
  if (layout.pipeline == 1 && layout.order > LayoutOrder::one_f_one_b) return "no pipeline";
  if (has_chunks && microbatches % layout.pipeline != 0) return "microbatches of interleaved-1f1b";
  return {};
}

double least_in_flight(const Layout& layout, int microbatches) {
  if (layout.order == LayoutOrder::zb_h2)
    return std::min<double>(2.0 * layout.pipeline - 1, microbatches);
  const RowSchedule schedule =
      layout.order == LayoutOrder::gpipe ? RowSchedule::gpipe : row_schedule(layout);
  return profile::in_flight(schedule, layout.pipeline, layout.chunks, microbatches);
}

/// Of an activation: what a budget in millionths and whole bytes may be above its number.
constexpr double kOfRounding = 1e-3;

}  // namespace

std::vector<int> gpus_of_sites(const LayoutProblem& problem, const Layout& layout) {
  const SiteChoice& choice = problem.placings[at(layout.placing)];
  const int whole = choice.split == SiteSplit::stages ? layout.pipeline : layout.data;
  const std::vector<int> parts = scenario::evenly(whole, static_cast<int>(choice.sites.size()));
  std::vector<int> gpus(problem.sites.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    gpus[at(choice.sites[i])] = parts[i] * static_cast<int>(layout.gpus() / whole);
  return gpus;
}

std::vector<int> sites_of_stages(const LayoutProblem& problem, const Layout& layout) {
  const SiteChoice& choice = problem.placings[at(layout.placing)];
  if (choice.split == SiteSplit::replicas || choice.sites.size() == 1)
    return std::vector<int>(at(layout.pipeline), choice.sites.front());
  std::vector<int> sites;
  const std::vector<int> parts =
      scenario::evenly(layout.pipeline, static_cast<int>(choice.sites.size()));
  for (std::size_t i = 0; i < parts.size(); ++i)
    sites.insert(sites.end(), at(parts[i]), choice.sites[i]);
  return sites;
}

double priced_gpus(const LayoutProblem& problem, const Layout& layout) {
  if (problem.has_one_price()) return static_cast<double>(layout.gpus());
  const std::vector<int> gpus = gpus_of_sites(problem, layout);
  double sum = 0;
  for (std::size_t site = 0; site < gpus.size(); ++site)
    sum += problem.sites[site].price * gpus[site];
  return sum;
}

TrainingRow row_of(const LayoutProblem& problem, const Layout& layout) {
  TrainingRow row = problem.model;
  row.tensor = layout.tensor;
  row.data = layout.data;
  row.pipeline = layout.pipeline;
  row.gpus = static_cast<int>(layout.gpus());
  row.micro_batch = layout.micro_batch;
  row.chunks = layout.chunks;
  row.schedule = row_schedule(layout);
  row.recompute = layout.recompute;
  row.sharding = layout.sharding;
  return row;
}

std::string_view why_no_layout(const LayoutProblem& problem, const Layout& layout) {
  const TrainingRow& model = problem.model;
  // Each count alone is at most as large: nothing below leaves 32 bits.
  if (std::int64_t{layout.tensor} * layout.data > kMostGpusOfLayout ||
      layout.gpus() > kMostGpusOfLayout)
    return "more than 2^20 GPUs";
  if (model.heads % layout.tensor != 0 || model.intermediate % layout.tensor != 0 ||
      model.hidden % layout.tensor != 0)
    return "tensor does not divide heads or width";
  if (std::int64_t{layout.pipeline} * layout.chunks > model.layers)
    return "more stages than layers";
  const std::int64_t unit = std::int64_t{layout.data} * layout.micro_batch;
  if (model.global_batch % unit != 0) return "global batch does not divide";
  const bool divides = layout.sharding != profile::ShardingKind::none;
  if (divides && layout.data == 1) return "sharding without replicas";
  const bool in_layers = layout.sharding == profile::ShardingKind::zero3 ||
                         (layout.sharding == profile::ShardingKind::zero2 && layout.pipeline == 1);
  if (in_layers) return "weights gathered layer by layer";
  if (!sites_are_large_enough(problem, layout)) return "GPUs of a datacenter";
  return why_no_order(layout, model.global_batch / static_cast<int>(unit));
}

Bytes memory_of(const LayoutProblem& problem, const Layout& layout) {
  const TrainingRow row = row_of(problem, layout);
  return profile::memory_of(row, least_in_flight(layout, row.microbatches())).total();
}

double in_flight(const LayoutProblem& problem, const Layout& layout) {
  const TrainingRow row = row_of(problem, layout);
  const int all = row.microbatches();
  const double least = least_in_flight(layout, all);
  if (!knows_links(layout.order)) return least;
  if (!problem.memory) return all;
  const profile::RowMemory one = profile::memory_of(row, 1);
  const double others = static_cast<double>(one.total().count()) - one.activations;
  const double room = static_cast<double>(problem.memory->count()) - others;
  return std::clamp(std::floor(room / one.activations - kOfRounding), least, double(all));
}

}  // namespace longhaul::planner
