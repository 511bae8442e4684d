#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "report/page/reported_run.hpp"
#include "report/record.hpp"

namespace longhaul::report {
namespace {

using nlohmann::ordered_json;
using Rows = std::span<const TimelineRow>;

/// Points of a device's memory over an iteration.
constexpr std::size_t kMemoryBins = 400;

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8U | (k < count ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= count ? kLetters[word >> (18 - 6 * k) & 63U] : '=';
  }
  return text;
}

template <typename Number>
std::string base64_of(const std::vector<Number>& numbers) {
  return base64(std::as_bytes(std::span{numbers}));
}

template <typename Number>
Number clipped(std::int64_t value) {
  return static_cast<Number>(std::clamp<std::int64_t>(value, std::numeric_limits<Number>::min(),
                                                      std::numeric_limits<Number>::max()));
}

/// The rows of an iteration on both sides, joined by op.
struct JoinedRows {
  const Timeline* predicted_names = nullptr;
  const Timeline* measured_names = nullptr;
  Rows predicted, measured;
  std::vector<const TimelineRow*> either;  ///< by op, ascending

  [[nodiscard]] const std::string& lane_name(const TimelineRow& row) const {
    return names_of(row).lanes[at(row.lane)];
  }
  [[nodiscard]] const std::string& datacenter_name(const TimelineRow& row) const {
    return names_of(row).datacenters[at(row.datacenter)];
  }
  [[nodiscard]] std::size_t place_of(std::int64_t op) const {
    const auto found =
        std::ranges::lower_bound(either, op, {}, [](const TimelineRow* row) { return row->op; });
    return static_cast<std::size_t>(found - either.begin());
  }

private:
  [[nodiscard]] const Timeline& names_of(const TimelineRow& row) const {
    const bool is_predicted = !predicted.empty() && &row >= predicted.data() &&
                              &row < predicted.data() + predicted.size();
    return is_predicted ? *predicted_names : *measured_names;
  }
};

Rows rows_in(const Timeline& timeline, const std::string& schedule, std::optional<int> iteration) {
  const auto position = position_of(timeline, schedule);
  if (!position) return {};
  if (!iteration) {
    const std::vector<int> known = iteration_numbers(timeline, *position);
    if (known.empty()) return {};
    iteration = known.front();
  }
  return trace::rows_of(timeline, *position, *iteration);
}

JoinedRows joined(const trace::Trace& trace, const ReportedSchedule& schedule) {
  JoinedRows rows;
  rows.predicted_names = &trace.predicted;
  rows.measured_names = &trace.measured;
  rows.predicted = rows_in(trace.predicted, schedule.name, std::nullopt);
  if (schedule.shown) rows.measured = rows_in(trace.measured, schedule.name, schedule.shown);
  std::map<std::int64_t, const TimelineRow*> by_op;
  for (const TimelineRow& row : rows.predicted) by_op.emplace(row.op, &row);
  for (const TimelineRow& row : rows.measured) by_op.emplace(row.op, &row);
  for (const auto& [op, row] : by_op) rows.either.push_back(row);
  return rows;
}

/// A lane of the picture: first a rank's blocks, then its messages.
struct PictureLane {
  int rank = 0;
  bool is_message = false;
  std::string name, datacenter;
  bool wan = false;
};

/// Where each row of `rows.either` lies.
struct Lanes {
  std::vector<PictureLane> lanes;
  std::vector<std::uint16_t> lane_of;
};

Lanes lanes_of(const JoinedRows& rows) {
  using Key = std::tuple<int, bool, std::string>;
  std::map<int, int> home;
  for (const TimelineRow* row : rows.either) home[row->rank] = row->datacenter;
  std::map<Key, PictureLane> found;
  const auto key_of = [&](const TimelineRow& row) {
    const bool computes = is_compute(row.kind) || row.kind == RowKind::prefill;
    return Key{row.rank, !computes, rows.lane_name(row)};
  };
  for (const TimelineRow* row : rows.either) {
    PictureLane& lane = found[key_of(*row)];
    lane.rank = row->rank;
    lane.is_message = std::get<1>(key_of(*row));
    lane.name = rows.lane_name(*row);
    lane.datacenter = rows.datacenter_name(*row);
    const auto peer = home.find(row->peer);
    const bool is_one_message = row->kind == RowKind::send || row->kind == RowKind::recv;
    if (is_one_message && peer != home.end() && peer->second != row->datacenter) lane.wan = true;
  }
  Lanes lanes;
  std::map<Key, std::uint16_t> number;
  for (auto& [key, lane] : found) {
    number[key] = clipped<std::uint16_t>(std::ssize(lanes.lanes));
    lanes.lanes.push_back(std::move(lane));
  }
  for (const TimelineRow* row : rows.either) lanes.lane_of.push_back(number[key_of(*row)]);
  return lanes;
}

ordered_json lanes_json(const std::vector<PictureLane>& lanes) {
  ordered_json json = ordered_json::array();
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const bool is_last = i + 1 == lanes.size() || lanes[i + 1].rank != lanes[i].rank;
    json.push_back({{"rank", lanes[i].rank},
                    {"name", lanes[i].name},
                    {"datacenter", lanes[i].datacenter},
                    {"blocks", !lanes[i].is_message},
                    {"wan", lanes[i].wan},
                    {"last", is_last}});
  }
  return json;
}

/// Of each rank, the largest activation memory within each of kMemoryBins stretches.
ordered_json memory_json(Rows rows, std::int64_t span) {
  std::map<int, std::map<std::int64_t, std::int64_t>> changes;
  for (const TimelineRow& row : rows) {
    if (!is_compute(row.kind) || row.size_bytes == 0 || !has_run(row)) continue;
    changes[row.rank][row.size_bytes > 0 ? row.start_ns : row.end_ns] += row.size_bytes;
  }
  ordered_json json = ordered_json::array();
  for (const auto& [rank, steps] : changes) {
    std::vector<float> most(kMemoryBins, 0);
    std::int64_t held = 0;
    std::size_t filled = 0;  // bins before it are complete
    for (const auto& [time, change] : steps) {
      const auto bin = std::min<std::size_t>(
          kMemoryBins - 1, static_cast<std::size_t>(static_cast<double>(time) /
                                                    static_cast<double>(span) * kMemoryBins));
      for (; filled < bin; ++filled)
        most[filled + 1] = std::max(most[filled + 1], static_cast<float>(held));
      held += change;
      most[bin] = std::max(most[bin], static_cast<float>(held));
    }
    for (; filled + 1 < kMemoryBins; ++filled)
      most[filled + 1] = std::max(most[filled + 1], static_cast<float>(held));
    json.push_back(base64_of(most));
  }
  return json;
}

std::int64_t end_of(Rows rows) {
  std::int64_t end = 0;
  for (const TimelineRow& row : rows) end = std::max(end, row.end_ns);
  return end;
}

ordered_json side_json(const JoinedRows& joined, Rows rows, std::int64_t unit) {
  const std::size_t count = joined.either.size();
  std::vector<std::uint32_t> start(count), length(count);
  std::vector<std::int32_t> bound(count, -1);
  std::vector<std::uint8_t> bound_kind(count), ran(count);
  for (const TimelineRow& row : rows) {
    const std::size_t i = joined.place_of(row.op);
    start[i] = clipped<std::uint32_t>(row.start_ns / unit);
    length[i] = clipped<std::uint32_t>(row.end_ns / unit - row.start_ns / unit);
    if (row.bound_by >= 0) bound[i] = static_cast<std::int32_t>(joined.place_of(row.bound_by));
    bound_kind[i] = static_cast<std::uint8_t>(index(row.bound_kind));
    ran[i] = has_run(row) ? 1 : 0;
  }
  ordered_json path = ordered_json::array();
  for (const trace::PathStep& step : trace::critical_path(rows))
    path.push_back(joined.place_of(step.op));
  const std::int64_t end = std::max<std::int64_t>(1, end_of(rows));
  return {{"start", base64_of(start)},
          {"length", base64_of(length)},
          {"bound", base64_of(bound)},
          {"bound_kind", base64_of(bound_kind)},
          {"ran", base64_of(ran)},
          {"path", std::move(path)},
          {"memory", memory_json(rows, end)},
          {"span", end / unit}};
}

}  // namespace

ordered_json timeline_json(const ReportedRun& run, const ReportedSchedule& schedule) {
  const JoinedRows rows = joined(run.trace, schedule);
  const Lanes lanes = lanes_of(rows);
  std::vector<std::uint8_t> kind;
  std::vector<std::int16_t> chunk, peer;
  std::vector<std::uint16_t> microbatch;
  ordered_json ops = ordered_json::array();
  bool counts_up = true;
  for (const TimelineRow* row : rows.either) {
    kind.push_back(static_cast<std::uint8_t>(index(row->kind)));
    chunk.push_back(clipped<std::int16_t>(row->chunk));
    peer.push_back(clipped<std::int16_t>(row->peer));
    microbatch.push_back(row->microbatch < 0 ? std::numeric_limits<std::uint16_t>::max()
                                             : clipped<std::uint16_t>(row->microbatch));
    counts_up = counts_up && row->op == std::ssize(ops);
    ops.push_back(row->op);
  }
  ordered_json kinds = ordered_json::array(), bound_kinds = ordered_json::array();
  for (const RowKind each : every<RowKind>()) kinds.push_back(to_string(each));
  for (const BoundKind each : every<BoundKind>()) bound_kinds.push_back(to_string(each));
  const std::int64_t end = std::max(end_of(rows.predicted), end_of(rows.measured));
  const std::int64_t unit = end / std::numeric_limits<std::uint32_t>::max() + 1;
  ordered_json json{{"run", schedule.run},
                    {"schedule", schedule.name},
                    {"iteration", schedule.shown ? ordered_json(*schedule.shown) : ordered_json()},
                    {"unit_ns", unit},
                    {"count", rows.either.size()},
                    {"kinds", std::move(kinds)},
                    {"bound_kinds", std::move(bound_kinds)},
                    {"lanes", lanes_json(lanes.lanes)},
                    {"lane", base64_of(lanes.lane_of)},
                    {"kind", base64_of(kind)},
                    {"chunk", base64_of(chunk)},
                    {"microbatch", base64_of(microbatch)},
                    {"peer", base64_of(peer)},
                    {"ops", counts_up ? ordered_json::array() : std::move(ops)}};
  if (!rows.predicted.empty()) json["predicted"] = side_json(rows, rows.predicted, unit);
  if (!rows.measured.empty()) json["measured"] = side_json(rows, rows.measured, unit);
  return json;
}

}  // namespace longhaul::report
