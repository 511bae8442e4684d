#include "harness/session/switching_session.hpp"

#include <algorithm>

#include "base/unit_text.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

/// A schedule on its way to all ranks; with the links as profiled where they are not known better.
std::string packed(const Schedule& schedule, const Scenario& seen) {
  Json text = {
      {"name", schedule.name}, {"csv", schedule::write_csv(schedule)}, {"links", Json::array()}};
  for (const Link& link : seen.links)
    text["links"].push_back(
        {{"latency_ns", link.latency.count()},
         {"bits_per_second",
          link.bandwidth.is_unlimited() ? Json(nullptr) : Json(link.bandwidth.bits_per_second())}});
  return text.dump();
}

void set_links(Scenario& scenario, const Json& links) {
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Json& rate = links[i]["bits_per_second"];
    scenario.links[i].latency = Duration{links[i]["latency_ns"].get<std::int64_t>()};
    scenario.links[i].bandwidth =
        rate.is_null() ? Bandwidth::unlimited() : Bandwidth{rate.get<double>()};
  }
}

class SwitchingRun {
public:
  SwitchingRun(engine::Ranks& ranks, const PipelineInput& input,
               const engine::EngineOptions& engine, const AdaptOptions& adapt,
               const PipelineSinks& sinks, int& next_position)
      : ranks_{ranks},
        input_{input},
        engine_{engine},
        adapt_{adapt},
        sinks_{sinks},
        next_position_{next_position},
        world_{input.scenario} {}

  SwitchingOutcome run(std::size_t position) {
    const PlannedSchedule& first = input_.schedules[position];
    order_ = first.schedule.name;
    // The same plan, not a copy of it: the input outlives this.
    planned_ = {std::shared_ptr<const PlannedSchedule>{}, &first};
    if (input_.compute.real)
      real_ = make_training_session(ranks_, first, input_.scenario, input_.compute);
    begin_segment(static_cast<int>(position));
    if (adapt_.on && ranks_.is_first()) adapter_.emplace(first.schedule, input_.scenario, adapt_);
    const int finished = take_earlier(position);
    if (is_wanted(finished))
      for (int i = -input_.warmup; i < 0; ++i) iterate(i);
    for (int i = finished; is_wanted(i); ++i) iterate(i);
    end_segment();
    if (adapter_) collect_events();
    return std::move(outcome_);
  }

private:
  /// True where another iteration follows after `done`.
  bool is_wanted(int done) const {
    if (input_.stopping.is_fixed()) return done < input_.iterations;
    return goes_on(input_.stopping, done, run_->makespans_ns(), ranks_.world());
  }

  /// Number of iterations that an earlier part of the run finished.
  int take_earlier(std::size_t position) {
    if (position >= sinks_.earlier.size()) return 0;
    const EarlierIterations& earlier = sinks_.earlier[position];
    run_->take(earlier);
    // The weather went on until the last of them ended, and then waited for us.
    if (!earlier.weather_ages.empty())
      age_ = earlier.weather_ages.back() + Duration{earlier.outcomes.back().report.makespan_ns};
    return earlier.count;
  }

  void iterate(int iteration) {
    const bool links = change_links(iteration);
    const bool order = adapt_.on && iteration > 0 && change_order(iteration);
    if (links || order) {
      end_segment();
      const std::string name = order ? order_ : fmt::format("{}+change@{}", order_, iteration);
      plan(name);
      begin_segment(next_position_++);
    }
    if (iteration >= 0 && weather_began_ == kNever)
      weather_began_ = begin_weather(ranks_, sinks_.clock, age_);
    const IterationTimes times = run_->iterate(iteration, weather_began_);
    const bool others_follow = iteration + 1 < input_.iterations;
    if (adapter_ && iteration >= 0 && others_follow) {
      adapter_->observe(iteration, planned_->plan, times.measured, times.predicted);
      collect_events();
    }
  }

  /// Applies the changes of links, which the schedules in use do not know of.
  bool change_links(int iteration) {
    const auto found = std::ranges::find(input_.changes, iteration, &LinkChange::iteration);
    if (found == input_.changes.end()) return false;
    world_ = found->scenario;
    if (ranks_.is_first()) {
      const std::string set = fmt::format("{}", fmt::join(found->set, ", "));
      outcome_.events.push_back({iteration, "change", "links: " + set, {{"set", found->set}}});
    }
    return true;
  }

  /// Rank 0 says whether all go on with another schedule, and hands it over.
  bool change_order(int iteration) {
    std::string text;
    if (adapter_) {
      if (const auto schedule = adapter_->take_switch(iteration))
        text = packed(*schedule, adapter_->seen());
      collect_events();
    }
    text = ranks_.world().broadcast(std::move(text));
    if (text.empty()) return false;
    const Json handed = Json::parse(text);
    const auto name = handed["name"].get<std::string>();
    schedule_ = schedule::read_csv(handed["csv"].get<std::string>(), name, name);
    order_ = fmt::format("{}@{}", name, iteration);
    if (engine_.emulation == engine::Emulation::off) set_links(world_, handed["links"]);
    return true;
  }

  /// Lowers the order of blocks as it is now for the links as they are now.
  void plan(const std::string& name) {
    auto planned = std::make_shared<PlannedSchedule>();
    planned->schedule = schedule_ ? *schedule_ : planned_->schedule;
    planned->schedule.name = name;
    planned->plan = plan::lower(planned->schedule, world_, planned_->plan.arrangement);
    planned->predicted = sim::simulate(planned->plan);
    planned_ = std::move(planned);
    if (ranks_.is_first()) outcome_.plans.push_back(planned_);
  }

  void begin_segment(int position) {
    run_.emplace(ranks_, *planned_, world_, position, engine_, sinks_, input_.compute.device,
                 real_.get());
  }
  void end_segment() {
    outcome_.segments.push_back(run_->finish());
    run_.reset();
  }
  void collect_events() {
    for (RunEvent& event : adapter_->events()) outcome_.events.push_back(std::move(event));
    adapter_->events().clear();
  }

  engine::Ranks& ranks_;
  const PipelineInput& input_;
  const engine::EngineOptions& engine_;
  const AdaptOptions& adapt_;
  const PipelineSinks& sinks_;
  int& next_position_;
  Scenario world_;                    ///< what is played now
  TimePoint weather_began_ = kNever;  ///< by this host's clock
  Duration age_{};  ///< of the weather when the first iteration begins here; on rank 0
  std::optional<Schedule> schedule_;  ///< none: the input's
  std::string order_;                 ///< what the order of blocks is called
  std::shared_ptr<const PlannedSchedule> planned_;
  std::unique_ptr<TrainingSession> real_;  ///< weights outlive a segment; nullptr: blocks are timed
  std::optional<ScheduleSession> run_;
  std::optional<AdaptiveScheduler> adapter_;  ///< on rank 0
  SwitchingOutcome outcome_;
};

bool is_within_budget(const PlannedSchedule& planned, const Scenario& scenario) {
  return !schedule::first_violation(planned.schedule, scenario);
}

Duration end_of(const PlannedSchedule& planned) {
  return std::ranges::max_element(planned.predicted, {}, &OpTime::end)->end;
}

}  // namespace

SwitchingOutcome run_switching(engine::Ranks& ranks, const PipelineInput& input,
                               std::size_t position, const engine::EngineOptions& engine,
                               const AdaptOptions& adapt, const PipelineSinks& sinks,
                               int& next_position) {
  return SwitchingRun{ranks, input, engine, adapt, sinks, next_position}.run(position);
}

AdaptOptions adapt_options_of(const PipelineOptions& options, const PipelineSettings& settings) {
  return {options.adaptive,
          options.schedule,
          settings.planner,
          options.switch_threshold_percent / 100,
          {settings.engine.emulation, settings.engine.payload}};
}

void keep_best(PipelineInput& input) {
  const auto best = std::ranges::min_element(
      input.schedules, [&](const PlannedSchedule& a, const PlannedSchedule& b) {
        return std::pair{!is_within_budget(a, input.scenario), end_of(a)} <
               std::pair{!is_within_budget(b, input.scenario), end_of(b)};
      });
  PlannedSchedule kept = std::move(*best);
  input.schedules.clear();
  input.schedules.push_back(std::move(kept));
}

void add_predictions(Timeline& predicted, const std::vector<SwitchingOutcome>& outcomes) {
  for (const SwitchingOutcome& outcome : outcomes)
    for (const auto& planned : outcome.plans)
      plan::append_rows(predicted, planned->plan, planned->predicted, 0);
}

}  // namespace longhaul::harness
