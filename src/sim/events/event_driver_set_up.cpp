#include <algorithm>
#include <iterator>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/check_extras.hpp"
#include "sim/events/event_driver.hpp"

namespace longhaul::sim {
namespace {

int reach_of(const Plan& plan) {
  int reach = 0;
  for (const plan::FarDependency& far : plan.extras.far)
    if (far.strength == plan::Strength::strong) reach = std::max(reach, far.iterations_back);
  return reach;
}

bool needs_notes(const Plan& plan, const plan::Stream& stream) {
  return plan::needs_order_of_time(plan) || stream.iterations > 1 || !stream.settings.empty();
}

}  // namespace

EventDriver::EventDriver(const Plan& plan, const plan::Stream& stream,
                         const plan::WeatherOfIteration& at)
    : plan_{plan},
      stream_{stream},
      at_{at},
      noted_{needs_notes(plan, stream)},
      instances_{plan, reach_of(plan),
                 noted_ ? LiveIterations::Notes::kept : LiveIterations::Notes::none, stream.first},
      pool_{plan, stream.first},
      values_{plan} {
  set_up_tables();
  for (std::size_t set = 0; set + 1 < plan.set_begin.size(); ++set)
    access_.push_back(access_of(plan, set));
  set_up_lanes();
}

EventDriver::Access EventDriver::access_of(const Plan& plan, std::size_t set) const {
  Access access = Access::own;
  for (std::uint32_t i = plan.set_begin[set]; i < plan.set_begin[set + 1]; ++i) {
    const Resource& resource = plan.resources[index(plan.set_items[i])];
    if (resource.serve != Serve::order) return Access::choice;
    if (resource.lanes > 1 || !resource.order.empty() || resource.capacity != 1)
      access = Access::request;
  }
  return access;
}

void EventDriver::set_up_lanes() {
  lanes_.resize(plan_.lanes.size());
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = plan_.lanes[i];
    LaneState& state = lanes_[i];
    state.serve = lane.serve;
    state.iteration = stream_.first - 1;
    if (lane.serve != Serve::order) state.way = Way::pool;
    state.has_mandatory = optional_.empty();
    for (std::size_t id = index(lane.first); id < index(lane.first) + lane.count; ++id) {
      if (optional_.empty()) break;
      if (optional_[id] == 0) state.has_mandatory = true;
      if (optional_[id] != 0) state.way = Way::pool;
    }
  }
  for (const plan::LaneSource& source : plan_.extras.sources)
    lanes_[index(source.lane)].way = Way::sourced;
  // What such a lane alone holds is taken by the choice of the instant, not in turn.
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].way == Way::in_turn || plan_.lanes[i].kind == OpKind::recv) continue;
    for (std::uint32_t k = 0; k < plan_.lanes[i].count; ++k) {
      Access& access = access_[index(plan_.ops[index(plan_.lanes[i].first) + k].resources)];
      if (access == Access::own || plan_.lanes[i].serve != Serve::order) access = Access::choice;
    }
  }
}

void EventDriver::set_up_tables() {
  const plan::PlanExtras& extras = plan_.extras;
  if (!noted_) return;
  const std::size_t count = plan_.ops.size();
  busy_.resize(plan_.resources.size(), 0);
  released_.resize(plan_.resources.size());
  waiting_.resize(plan_.resources.size());
  begun_[stream_.first] = Duration::zero();
  if (!extras.windows.empty())
    optional_ = plan::ops_that_may_not_run(plan_, plan::MayNotRun::optional);
  for (const plan::OpWindow& window : extras.windows) windows_[number(window.op)] = window;
  deadlines_.begin(extras.deadlines);
  if (!extras.priorities.empty()) priorities_.resize(count, 0);
  for (const plan::OpPriority& each : extras.priorities)
    priorities_[index(each.op)] = each.priority;
  if (!extras.far.empty()) {
    far_.first.assign(count + 1, 0);
    watched_.assign(count, 0);
    far_.all = extras.far;
    std::ranges::stable_sort(far_.all, {}, &plan::FarDependency::op);
    for (const plan::FarDependency& far : far_.all) {
      ++far_.first[index(far.op) + 1];
      if (far.strength == plan::Strength::strong) continue;
      watched_[index(far.before)] = 1;
      reach_of_versions_ = std::max(reach_of_versions_, far.iterations_back);
    }
    for (std::size_t i = 1; i <= count; ++i) far_.first[i] += far_.first[i - 1];
  }
  if (!extras.sources.empty()) {
    sources_ = std::make_unique<Sources>();
    sources_->begin(plan_);
  }
  if (!extras.overlap.none()) progress_ = std::make_unique<BlockProgress>(plan_);
  for (std::size_t set = 0; progress_ && set + 1 < plan_.set_begin.size(); ++set) {
    on_device_.push_back(0);
    for (std::uint32_t i = plan_.set_begin[set]; i < plan_.set_begin[set + 1]; ++i)
      if (plan_.resources[index(plan_.set_items[i])].kind == ResourceKind::device)
        on_device_.back() = 1;
  }
  for (const plan::StreamSetting& setting : stream_.settings) values_.append(setting);
}

void EventDriver::add_setting(const plan::StreamSetting& setting) {
  LONGHAUL_ASSERT(noted_, "one iteration of {} has no later one", plan_.schedule);
  const int from = setting.from_iteration;
  const auto refuse = [&](int begun) {
    fail(
        "a setting of {} from iteration {} on comes late (iteration {} has begun). Name a later "
        "one.",
        plan_.schedule, from, begun);
  };
  if (from < instances_.oldest()) refuse(from);
  if (from < values_.last()) refuse(values_.last());
  for (int iteration = from; instances_.is_open(iteration); ++iteration) {
    const std::uint32_t base = instances_.base_of(iteration);
    for (std::uint32_t op = 0; op < plan_.ops.size(); ++op)
      if (stage(base + op) == Stage::served) refuse(iteration);
  }
  values_.forget_before(instances_.oldest());
  values_.append(setting);
  most_settings_ = std::max(most_settings_, values_.held());
}

/// What needs each op, of its own iteration or of a later one.
void EventDriver::set_up_dependents() {
  std::vector<plan::FarDependency>& all = dependents_.all;
  for (std::uint32_t i = 0; i < plan_.ops.size(); ++i)
    for (const OpId before : plan_.after_of(OpId{i})) all.push_back({OpId{i}, before, 0});
  std::ranges::copy_if(far_.all, std::back_inserter(all), [](const plan::FarDependency& far) {
    return far.strength == plan::Strength::strong;
  });
  std::ranges::stable_sort(all, {}, &plan::FarDependency::before);
  dependents_.first.assign(plan_.ops.size() + 1, 0);
  for (const plan::FarDependency& each : all) ++dependents_.first[index(each.before) + 1];
  for (std::size_t i = 1; i < dependents_.first.size(); ++i)
    dependents_.first[i] += dependents_.first[i - 1];
}

}  // namespace longhaul::sim
