#pragma once

#include "base/random.hpp"
#include "planner/layouts/layout_search.hpp"
#include "planner/predict/rows.hpp"

namespace longhaul::test {

/// A GPT of 16 layers of 2048 on Selene; layouts need not fit.
inline planner::LayoutProblem layout_problem(int global_batch = 64) {
  planner::LayoutProblem problem;
  problem.model = training_row(1, 1, 1, 1);
  problem.model.global_batch = global_batch;
  problem.machine = &selene();
  problem.values = selene().parameters;
  problem.extrapolation = profile::Extrapolation::allowed;
  return problem;
}

/// The same over two sites 10 ms and 20 Gbps apart, on the way back 25 ms and 5 Gbps.
inline planner::LayoutProblem two_sites(int global_batch = 64) {
  planner::LayoutProblem problem = layout_problem(global_batch);
  problem.sites = {{"west", std::nullopt}, {"east", std::nullopt}};
  const planner::SiteLink east{10ms, 20_Gbps}, west{25ms, 5_Gbps};
  problem.links = {{{}, east}, {west, {}}};
  problem.placings = {{{0}, planner::SiteSplit::stages},
                      {{0, 1}, planner::SiteSplit::stages},
                      {{0, 1}, planner::SiteSplit::replicas}};
  return problem;
}

template <typename Value>
Value one_of(Random& random, const std::vector<Value>& values) {
  return values[static_cast<std::size_t>(
      random.between(0, static_cast<std::int64_t>(values.size()) - 1))];
}

/// Some of the values, at least one, in their order.
template <typename Value>
std::vector<Value> some_of(Random& random, const std::vector<Value>& values) {
  std::vector<Value> some;
  for (const Value& value : values)
    if (random.uniform() < 0.4) some.push_back(value);
  if (some.empty()) some.push_back(one_of(random, values));
  return some;
}

/// Orders that know the links of their layout, or those that do not.
inline std::vector<planner::LayoutOrder> orders_that(bool know_links) {
  std::vector<planner::LayoutOrder> orders;
  for (const planner::LayoutOrder order : every<planner::LayoutOrder>())
    if (knows_links(order) == know_links) orders.push_back(order);
  return orders;
}

/// One that can be run.
inline planner::Layout random_layout(
    Random& random, const planner::LayoutProblem& problem,
    const std::vector<planner::LayoutOrder>& orders = orders_that(false)) {
  for (;;) {
    planner::Layout layout;
    layout.tensor = one_of<int>(random, {1, 2, 4, 8});
    layout.data = one_of<int>(random, {1, 2, 4});
    layout.pipeline = one_of<int>(random, {1, 2, 3, 4, 8});
    layout.micro_batch = one_of<int>(random, {1, 2, 4});
    layout.order = one_of(random, orders);
    if (layout.order == planner::LayoutOrder::interleaved)
      layout.chunks = static_cast<int>(random.between(1, 2));
    if (is_wave(layout.order)) layout.chunks = 2;
    layout.recompute = static_cast<RecomputeKind>(random.between(0, 2));
    layout.sharding = one_of<profile::ShardingKind>(
        random, {profile::ShardingKind::none, profile::ShardingKind::zero1});
    layout.placing =
        static_cast<int>(random.between(0, static_cast<std::int64_t>(problem.placings.size()) - 1));
    if (why_no_layout(problem, layout).empty()) return layout;
  }
}

}  // namespace longhaul::test
