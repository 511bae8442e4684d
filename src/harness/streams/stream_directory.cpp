#include "harness/streams/stream_directory.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "harness/checkpoint/run_segments.hpp"
#include "harness/options/run_files.hpp"
#include "harness/ranks/main.hpp"
#include "plan/rows.hpp"

namespace longhaul::harness {
namespace {

/// Begins the directory or goes on with it; gives back how far each stream is.
std::vector<int> open_streams(const StreamRequest& request, int ranks, std::size_t streams,
                              const std::function<Timeline()>& predict) {
  const bool begun = request.resume && kept_input(request.out, request.asked).has_value();
  if (!begun) {
    require_free(request.out);
    keep_input(request.out, request.asked, nlohmann::json::object());
  }
  std::vector<int> finished(streams, 0);
  const bool has_run = std::filesystem::exists(request.out / "run.h5");
  if (has_run) finished = count_finished(request.out, ranks, streams);
  if (request.together)
    std::ranges::fill(finished, std::min(*request.together, std::ranges::min(finished)));
  if (begun) set_unfinished_aside(request.out, finished);
  if (!has_run) trace::begin_run(request.out, request.info, predict(), ranks);
  return finished;
}

}  // namespace

StreamDirectory::StreamDirectory(engine::Ranks& ranks, const StreamRequest& request,
                                 std::size_t streams, const std::function<Timeline()>& predict,
                                 Duration offset)
    : ranks_{ranks}, directory_{request.out}, offset_{offset} {
  const std::string counts = on_rank0(ranks.world(), [&] {
    return nlohmann::json(open_streams(request, ranks.count(), streams, predict)).dump();
  });
  finished_ = nlohmann::json::parse(counts).get<std::vector<int>>();
  ranks.watchdog().report_also_to(directory_ / fmt::format("report.{}.txt", index(ranks.self())));
  writer_.emplace(directory_);
}

int StreamDirectory::finished(int stream) const { return finished_[to_size(stream)]; }

void StreamDirectory::keep(int stream, const Plan& plan, const engine::IterationResult& result) {
  OpResults results{result.times, result.outcomes, result.versions};
  for (OpTime& time : results.times)
    if (time.end > Duration::zero())
      for (Duration* stamp : {&time.ready, &time.start, &time.end}) *stamp += offset_;
  Timeline rows;
  plan::append_rows(rows, plan, results, result.iteration, ranks_.self());
  writer_->write({stream, result.iteration, static_cast<int>(ranks_.self())}, std::move(rows));
}

void StreamDirectory::finish(std::span<const trace::RankClock> clocks,
                             const nlohmann::json& environment, Ends ends) {
  writer_->finish();
  ranks_.world().barrier();
  on_rank0(ranks_.world(), [&] {
    const trace::MergedRows rows = trace::merge_run_into(directory_, directory_ / "trace.h5",
                                                         {clocks, environment.dump(), {}});
    if (rows.iterations_left_out > 0)
      fail("{} lacks {} of the iterations (segments of them are damaged on disk). Run again.",
           (directory_ / "trace.h5").string(), rows.iterations_left_out);
    if (ends == Ends::here) remove_segments(directory_);
    return std::string{};
  });
}

bool is_complete_stream(const std::filesystem::path& directory) {
  return std::filesystem::exists(directory / "trace.h5") &&
         !std::filesystem::exists(directory / "run.h5");
}

}  // namespace longhaul::harness
