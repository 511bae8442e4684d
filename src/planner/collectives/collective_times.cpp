#include "planner/collectives/collective_times.hpp"

#include <algorithm>
#include <numeric>

#include "base/index.hpp"
#include "plan/critical_messages.hpp"
#include "schedule/network_routes.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

using plan::Collective;
using plan::CollectiveAlgorithm;

/// At least so many: what each algorithm sends along each dimension for each piece.
std::size_t count_messages(const Collective& collective) {
  const plan::Mesh mesh = plan::mesh_of(collective);
  const auto members = collective.members.size();
  std::size_t count = 0;
  for (int dimension = 0; dimension < mesh.dimensions(); ++dimension) {
    const CollectiveAlgorithm algorithm = mesh.algorithms[at(dimension)];
    const bool all_at_once =
        algorithm == CollectiveAlgorithm::ring || algorithm == CollectiveAlgorithm::direct;
    const bool of_one =
        collective.kind == CollectiveKind::broadcast || collective.kind == CollectiveKind::reduce ||
        collective.kind == CollectiveKind::gather || collective.kind == CollectiveKind::scatter;
    count += all_at_once && !of_one ? members * to_size(mesh.sizes[at(dimension)] - 1) : members;
  }
  return count * to_size(collective.pieces);
}

/// The resource whose work takes longest, if it is never idle, and how long that is.
void find_busiest(const Plan& plan, const OpTimes& times, CollectiveTime& played) {
  std::vector<plan::ResourceUse> uses = plan::occupancy(plan, times);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Duration work = uses[i].busy / plan.resources[i].capacity;
    if (uses[i].kind == ResourceKind::device || work <= played.least) continue;
    played.least = work;
    played.busiest = std::move(uses[i]);
  }
}

}  // namespace

Result<CollectiveTime> play_collective(const Collective& collective, const Scenario& scenario) {
  if (auto why = plan::why_no_steps(collective)) return *std::move(why);
  const std::size_t expected = count_messages(collective);
  if (expected > kMostMessages)
    return refused(
        "{} of {} members in {} pieces by {} has more than {} messages. Use fewer pieces.",
        to_text(collective.kind), collective.members.size(), collective.pieces,
        to_string(collective.algorithm), kMostMessages);
  const Result<Plan> lowered = plan::lower_collective(collective, scenario);
  if (!lowered) return lowered.refusal();
  const Plan& plan = *lowered;
  const plan::CollectiveSteps& steps = *plan.stepped.front().steps;
  const OpTimes times = sim::simulate(plan);
  CollectiveTime played;
  played.collective = collective;
  for (const OpTime& time : times) played.duration = std::max(played.duration, time.end);
  played.messages = steps.messages.size();
  played.critical_messages = plan::messages_on_critical_path(plan, times);
  played.bytes = plan::bytes_by_level(collective, steps, scenario);
  find_busiest(plan, times, played);
  return played;
}

Result<std::vector<int>> mesh_of_levels(const std::vector<Rank>& members,
                                        const Scenario& scenario) {
  const schedule::NetworkRoutes routes{scenario};
  // Members of one node, and of one datacenter, that lie together.
  std::vector<int> in_node{1};
  std::vector<int> nodes_in_datacenter{1};
  for (std::size_t i = 1; i < members.size(); ++i) {
    const NetworkLevel level = routes.level(members[i - 1], members[i]);
    if (level == NetworkLevel::node) {
      ++in_node.back();
      continue;
    }
    in_node.push_back(1);
    if (level == NetworkLevel::datacenter) {
      ++nodes_in_datacenter.back();
    } else {
      nodes_in_datacenter.push_back(1);
    }
  }
  const auto differ = [](const std::vector<int>& counts) {
    return std::ranges::any_of(counts, [&](int count) { return count != counts.front(); });
  };
  if (differ(in_node) || differ(nodes_in_datacenter))
    return refused(
        "the group's nodes or datacenters hold unequal numbers of members, so that they form no "
        "mesh. Give --mesh.");
  std::vector<int> sizes;
  for (const int size :
       {static_cast<int>(nodes_in_datacenter.size()), nodes_in_datacenter.front(), in_node.front()})
    if (size > 1) sizes.push_back(size);
  if (sizes.empty()) sizes.push_back(1);
  return sizes;
}

std::vector<int> usual_order(CollectiveKind kind, int dimensions) {
  std::vector<int> order(to_size(dimensions));
  std::iota(order.begin(), order.end(), 0);
  const bool far_first = kind == CollectiveKind::all_gather || kind == CollectiveKind::broadcast ||
                         kind == CollectiveKind::scatter;
  if (!far_first) std::ranges::reverse(order);
  return order;
}

std::vector<Collective> every_algorithm(const Collective& collective, const Scenario& scenario) {
  std::vector<Collective> all;
  const auto add = [&](const Collective& each) {
    if (!plan::why_no_steps(each)) all.push_back(each);
  };
  Collective each = collective;
  each.mesh = {};
  for (const CollectiveAlgorithm algorithm : every<CollectiveAlgorithm>()) {
    each.algorithm = algorithm;
    if (algorithm != CollectiveAlgorithm::hierarchical) add(each);
  }
  const Result<std::vector<int>> sizes = mesh_of_levels(collective.members, scenario);
  if (!sizes || sizes->size() < 2) return all;
  each.algorithm = CollectiveAlgorithm::hierarchical;
  each.mesh = {*sizes, usual_order(collective.kind, static_cast<int>(sizes->size())),
               std::vector(sizes->size(), CollectiveAlgorithm::ring)};
  add(each);
  return all;
}

}  // namespace longhaul::planner
