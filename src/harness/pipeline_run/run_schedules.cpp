#include "harness/pipeline_run/run_schedules.hpp"

#include <optional>

#include "base/clock.hpp"
#include "base/program/program.hpp"
#include "harness/records/pipeline_output.hpp"

namespace longhaul::harness {
namespace {

/// The others wait while rank 0 merges: a second for 100'000 rows is many times what it takes.
Duration merge_time(const PipelineInput& input) {
  std::int64_t rows = 0;
  for (const PlannedSchedule& planned : input.schedules)
    rows += std::ssize(planned.plan.ops) * (input.iterations + 1);
  return std::chrono::microseconds{10} * rows;
}

}  // namespace

std::vector<SwitchingOutcome> run_schedules(engine::Ranks& ranks, const PipelineInput& input,
                                            const PipelineOptions& options,
                                            const engine::EngineOptions& engine,
                                            const AdaptOptions& adapt, Environment& environment,
                                            RunDirectory& directory) {
  int total = (input.iterations + input.warmup) * static_cast<int>(input.schedules.size());
  for (const EarlierIterations& earlier : directory.earlier()) total -= earlier.count;
  std::optional<Progress> progress;
  if (ranks.is_first()) progress.emplace("bench_pipeline", total);
  int done = 0;
  const PipelineSinks sinks{traced_directory(options),
                            environment.clock(),
                            [&](const std::string& schedule) {
                              environment.watch_load();
                              ++done;
                              if (progress) progress->update(done, schedule);
                            },
                            directory.earlier(),
                            [&](const IterationNote& note) { directory.note(note); },
                            [&](int position, const PipelineMeasurement& measurement) {
                              directory.note_end(position, measurement);
                            }};
  std::vector<SwitchingOutcome> outcomes;
  const Duration patience = std::chrono::seconds{5};  // for a segment to be written
  ranks.watchdog().set_patience(patience);
  int next_position = static_cast<int>(input.schedules.size());
  for (std::size_t i = 0; i < input.schedules.size(); ++i)
    outcomes.push_back(run_switching(ranks, input, i, engine, adapt, sinks, next_position));
  ranks.watchdog().set_patience(24 * patience + merge_time(input));
  return outcomes;
}

}  // namespace longhaul::harness
