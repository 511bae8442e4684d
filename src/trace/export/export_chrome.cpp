#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "trace/export/export.hpp"
#include "trace/export/slice_layout.hpp"
#include "trace/export/text_writer.hpp"
#include "trace/report/report.hpp"
#include "trace/timeline/iteration_view.hpp"

namespace longhaul::trace {
namespace {

/// Quoted, and valid whatever bytes the text holds.
std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string slice_name(const TimelineRow& row) {
  if (is_collective(row.kind))
    return fmt::format("{} {}", longhaul::to_string(row.kind), row.chunk);
  if (row.step >= 0) return fmt::format("step {} (chunk {})", row.step, row.chunk);
  if (row.leg != MessageLeg::whole)
    return fmt::format("{} {}/{} of chunk {} microbatch {} (replica {})",
                       longhaul::to_string(row.leg), row.piece + 1, row.pieces, row.chunk,
                       row.microbatch, row.owner);
  if (!is_compute(row.kind))
    return fmt::format("{} {}", longhaul::to_string(row.kind), row.microbatch);
  if (row.microbatch < 0)
    return fmt::format("{} (chunk {})", longhaul::to_string(row.kind), row.chunk);
  if (row.parts == 1) return fmt::format("{}{}", longhaul::to_string(row.kind), row.microbatch);
  return fmt::format("{}{}.{}/{}", longhaul::to_string(row.kind), row.microbatch, row.part,
                     row.parts);
}

/// As a JSON text; an operator's with its own name, which is a file's.
std::string quoted_name(const TimelineRow& row, const std::vector<std::string>& operators) {
  if (row.operator_index < 0) return '"' + slice_name(row) + '"';
  const std::string layer = row.layer < 0 ? "" : fmt::format(" of layer {}", row.layer);
  return json_string(
      fmt::format("{} {}{}", slice_name(row), operators[at(row.operator_index)], layer));
}

class ChromeExport {
public:
  ChromeExport(const Trace& trace, const Selection& selection, std::ostream& out)
      : trace_{trace},
        selection_{selection},
        placement_{trace, selection},
        out_{out, selection.most_bytes} {}

  void run() {
    out_.print(
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"creator\":{},\"git_commit\":{},"
        "\"command_line\":{},\"time_scale\":{}}},\n\"traceEvents\":[\n",
        json_string(trace_.info.creator), json_string(trace_.info.git_commit),
        json_string(trace_.info.command_line), trace_.info.time_scale);
    for (const Source& source : sources_of(trace_)) add_source(source);
    out_.print("\n]}}\n");
    out_.flush();
  }

private:
  static constexpr int kIterationThread = 0;

  /// Starts an event; the caller closes it.
  template <typename... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    out_.print("{}", first_ ? "{" : ",\n{");
    first_ = false;
    out_.print(format, std::forward<Args>(args)...);
    out_.print("}}");
  }
  void metadata(const char* what, int pid, int tid, const std::string& name, int position) {
    event(R"("name":"{}_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}})", what, pid, tid,
          json_string(name));
    event(R"("name":"{}_sort_index","ph":"M","pid":{},"tid":{},"args":{{"sort_index":{}}})", what,
          pid, tid, position);
  }

  void add_source(const Source& source) {
    threads_.clear();
    for (const IterationKey& key : selected_iterations(source, selection_))
      add_iteration(source, key);
    name_threads(source);
    first_pid_ += static_cast<int>(source.timeline->datacenters.size());
  }

  void add_iteration(const Source& source, const IterationKey& key) {
    const auto rows = rows_of(*source.timeline, key.schedule, key.iteration);
    const std::int64_t begin = placement_.begin_ns(source, key);
    const std::vector<std::size_t> other = match_messages(rows);
    const std::vector<int> lane_threads = threads_of_lanes(rows);
    std::map<int, std::int64_t> end_of_process;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Place place = place_of(rows[i], lane_threads[i]);
      add_slice(rows[i], quoted_name(rows[i], source.timeline->operators), begin, place);
      if (other[i] != kNoRow) add_arrow(rows, i, other[i], begin, place);
      auto& end = end_of_process[place.pid];
      end = std::max(end, rows[i].end_ns);
    }
    first_message_ += rows.size();
    const std::string name =
        source.timeline->schedules[at(key.schedule)] +
        (source.measured ? fmt::format(", iteration {}", key.iteration) : ", predicted");
    for (const auto& [pid, end] : end_of_process)
      event(R"("name":{},"cat":"iteration","ph":"X","ts":{},"dur":{},"pid":{},"tid":{})",
            json_string(name), Microseconds{begin}, Microseconds{end}, pid, kIterationThread);
  }

  struct Place {
    int pid, tid;
  };
  Place place_of(const TimelineRow& row, int lane_thread) {
    const int pid = first_pid_ + row.datacenter;
    const auto [at, is_new] = threads_.try_emplace({pid, row.rank, row.lane, lane_thread}, 0);
    if (is_new) at->second = static_cast<int>(threads_.size());
    return {pid, at->second};
  }

  void add_slice(const TimelineRow& row, const std::string& name, std::int64_t begin,
                 const Place& place) {
    event(R"("name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},)"
          R"("args":{{"microbatch":{},"chunk":{},"size_bytes":{},"op":{}}})",
          name, longhaul::to_string(row.kind), Microseconds{begin + row.start_ns},
          Microseconds{drawn_end_ns(row) - row.start_ns}, place.pid, place.tid, row.microbatch,
          row.chunk, row.size_bytes, row.op);
  }

  /// One end of the arrow: it leaves at the start of the transfer and lands in the last nanosecond
  /// before the arrival. Both sides name it by the position of the send.
  void add_arrow(std::span<const TimelineRow> rows, std::size_t row, std::size_t other,
                 std::int64_t begin, const Place& place) {
    const bool sends = rows[row].kind == RowKind::send;
    const std::int64_t at = sends ? rows[row].start_ns : drawn_end_ns(rows[row]) - 1;
    event(R"("name":"message","cat":"message","ph":"{}",{}"id":{},"ts":{},"pid":{},"tid":{})",
          sends ? "s" : "f", sends ? "" : R"("bp":"e",)", first_message_ + (sends ? row : other),
          Microseconds{begin + at}, place.pid, place.tid);
  }

  void name_threads(const Source& source) {
    int position = 0;
    int named_pid = -1;
    for (const auto& [thread, tid] : threads_) {
      const auto& [pid, rank, lane, lane_thread] = thread;
      if (pid != named_pid) {
        const auto datacenter = at(pid - first_pid_);
        const std::string& name = source.timeline->datacenters[datacenter];
        metadata("process", pid, kIterationThread, fmt::format("{} ({})", name, source.name), pid);
        metadata("thread", pid, kIterationThread, "iteration", -1);
        named_pid = pid;
      }
      const std::string& lane_name = source.timeline->lanes[at(lane)];
      const std::string copy = lane_thread == 0 ? "" : fmt::format(" ({})", lane_thread + 1);
      metadata("thread", pid, tid, fmt::format("rank {} {}{}", rank, lane_name, copy), position++);
    }
  }

  const Trace& trace_;
  const Selection& selection_;
  SliceLayout placement_;
  TextWriter out_;
  bool first_ = true;
  int first_pid_ = 1;              ///< of the source being added
  std::size_t first_message_ = 1;  ///< of the iteration being added
  /// tid by process, rank, lane and thread of the lane, in the order in which they are shown.
  std::map<std::tuple<int, std::int32_t, std::int32_t, int>, int> threads_;
};

}  // namespace

void export_chrome(const Trace& trace, const Selection& selection, std::ostream& out) {
  require_rows(trace, selection);
  ChromeExport{trace, selection, out}.run();
}

}  // namespace longhaul::trace
