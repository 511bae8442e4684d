#include "cli/schedule/stream_rows.hpp"

#include <fstream>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/link_model/weather.hpp"
#include "plan/rows.hpp"
#include "planner/collectives/grain.hpp"
#include "report/record_file.hpp"
#include "sim/simulate.hpp"

namespace longhaul::cli {

void write_stream_rows(const std::filesystem::path& file, const Schedule& schedule,
                       const Scenario& scenario, Arrangement arrangement, int iterations) {
  if (scenario.parallel.gradient_sync != GradientSync::compressed || scenario.train.adapt.every > 0)
    fail(
        "{}: --rows is of replicas that train together without a controller (gradient_sync = "
        "\"compressed\", train.adapt.every = 0). Leave it out.",
        scenario.name);
  report::require_new_file(file);
  std::ofstream out{file};
  out << "iteration,rank,lane,kind,chunk,microbatch,part,peer,start_ns,end_ns\n";
  const Plan plan = planner::lower_reported(schedule, scenario, arrangement).plan;
  const plan::Weather weather{plan, scenario};
  const plan::WeatherOfIteration at{weather.calm() ? nullptr : &weather, 0, {}};
  const auto take = [&](const sim::StreamedIteration& done) {
    const plan::PlanRows rows{plan, done.results, done.iteration};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const TimelineRow row = rows[i];
      out << fmt::format("{},{},{},{},{},{},{},{},{},{}\n", row.iteration, row.rank,
                         plan.lanes[index(plan.ops[i].lane)].name, to_string(row.kind), row.chunk,
                         row.microbatch, row.part, row.peer, row.start_ns, row.end_ns);
    }
  };
  sim::simulate_stream(plan, {iterations, {}}, take, at);
  out.close();
  if (!out) fail("cannot write {}. Check that there is space.", file.string());
}

}  // namespace longhaul::cli
