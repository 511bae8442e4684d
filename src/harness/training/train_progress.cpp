#include "harness/training/train_progress.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text_file.hpp"
#include "harness/options/run_files.hpp"
#include "harness/ranks/main.hpp"
#include "harness/training/state_file.hpp"
#include "report/host_load.hpp"
#include "report/watched_run.hpp"

namespace longhaul::harness {
namespace {

constexpr const char* kFile = "progress.json";
constexpr const char* kInput = "input.json";  // of a complete run

/// Where a rank has something to say: the first of them for all, as CollectiveError.
void fail_together(const comm::Communicator& world, const std::string& mine) {
  std::vector<int> counts;
  const std::vector<std::byte> all = world.gather(std::as_bytes(std::span{mine}), counts);
  const std::string first = on_rank0(world, [&]() -> std::string {
    const auto said = std::ranges::find_if(counts, [](int count) { return count > 0; });
    if (said == counts.end()) return {};
    return fmt::format("rank {}: {}", said - counts.begin(),
                       std::string_view{reinterpret_cast<const char*>(all.data()),
                                        static_cast<std::size_t>(*said)});
  });
  if (!first.empty()) throw CollectiveError{first};
}

/// Has it what is looked for below?
bool is_of_a_run(const nlohmann::ordered_json& kept, bool is_complete) {
  if (!kept.contains("asked") || !kept["asked"].is_object()) return false;
  if (is_complete) return true;
  if (!kept.contains("curves") || !kept["curves"].is_object()) return false;
  if (!kept.contains("under_way")) return true;
  const nlohmann::ordered_json& curve = kept["under_way"];
  return curve.contains("name") && curve["name"].is_string() && curve.contains("iterations") &&
         curve["iterations"].is_number_integer() && curve.contains("curve");
}

std::vector<std::int64_t> counts_of(const std::vector<Duration>& times) {
  std::vector<std::int64_t> counts;
  for (const Duration time : times) counts.push_back(time.count());
  return counts;
}

report::AdaptationReport adaptation_of_state(const nlohmann::ordered_json& json) {
  report::AdaptationReport adaptation{
      {}, json.at("samples").get<std::int64_t>(), json.at("effective_samples").get<double>()};
  const nlohmann::ordered_json& decisions = json.at("decisions");
  for (const auto& made : decisions) {
    planner::Adaptation& decision = adaptation.decisions.emplace_back();
    made.at("iteration").get_to(decision.iteration);
    decision.bandwidth = Bandwidth{made.at("bandwidth_bits_per_second").get<double>()};
    made.at("batch").get_to(decision.setting.batch);
    made.at("compression_rate").get_to(decision.setting.compression_rate);
    decision.reason =
        from_string<planner::AdaptationReason>(made.at("reason").get<std::string>()).value();
  }
  return adaptation;
}

}  // namespace

nlohmann::ordered_json curve_state(const TrainCurve& curve) {
  nlohmann::ordered_json json{{"method", curve.method},
                              {"composed", curve.is_composed},
                              {"seed", curve.seed},
                              {"learning_rate", curve.learning_rate},
                              {"losses", curve.losses},
                              {"starts", counts_of(curve.starts)},
                              {"elapsed", counts_of(curve.elapsed)},
                              {"period", curve.period.count()},
                              {"diverged", curve.diverged},
                              {"payload", curve.payload_bytes},
                              {"encoded", curve.encoded_bytes},
                              {"wan_payload", curve.wan_payload_bytes},
                              {"wan_encoded", curve.wan_encoded_bytes},
                              {"between_stages", curve.between_stages},
                              {"wan_between_stages", curve.wan_between_stages},
                              {"wan_nominal", curve.wan_nominal_bytes},
                              {"ops", curve.ops},
                              {"overran", curve.overran},
                              {"messages", curve.checks.messages},
                              {"blocks", curve.checks.blocks},
                              {"corrupted", curve.checks.wrong()},
                              {"parts_met", curve.parts_met},
                              {"parts_fresh", curve.parts_fresh},
                              {"versions", curve.versions}};
  const auto add = [&](const char* key, const auto& value) {
    if (value) json[key] = *value;
  };
  add("lost", curve.lost_relative);
  add("predicted_fresh", curve.predicted_fresh_share);
  if (curve.predicted_period) json["predicted_period"] = curve.predicted_period->count();
  add("iterations_to_target", curve.iterations_to_target);
  if (curve.time_to_target) json["time_to_target"] = curve.time_to_target->count();
  if (curve.replay)
    json["replay"] = {curve.replay->equal, curve.replay->losses_equal,
                      curve.replay->largest_difference};
  json["longer_at_first"] = counts_of(curve.longer_at_first);
  if (curve.replicas_equal) json["replicas_equal"] = *curve.replicas_equal;
  json["points"] = nlohmann::ordered_json::array();
  for (const TrainPoint& point : curve.points)
    json["points"].push_back(
        {point.iteration, point.elapsed.count(), point.train_loss, point.validation});
  if (curve.adaptation)
    json["adaptation"] = {{"decisions", report::adaptation_json(*curve.adaptation)},
                          {"samples", curve.adaptation->samples},
                          {"effective_samples", curve.adaptation->effective_samples}};
  return json;
}

TrainCurve curve_of_state(const nlohmann::ordered_json& json) {
  TrainCurve curve;
  const auto take = [&](const char* key, auto& value) { json.at(key).get_to(value); };
  const auto number_of = [](const nlohmann::ordered_json& value) {  // JSON knows no infinity
    return value.is_null() ? std::nan("") : value.get<double>();
  };
  take("method", curve.method);
  take("composed", curve.is_composed);
  take("seed", curve.seed);
  take("learning_rate", curve.learning_rate);
  const nlohmann::ordered_json& losses = json.at("losses");
  for (const auto& loss : losses) curve.losses.push_back(number_of(loss));
  for (const auto ns : json.at("starts").get<std::vector<std::int64_t>>())
    curve.starts.emplace_back(ns);
  for (const auto ns : json.at("elapsed").get<std::vector<std::int64_t>>())
    curve.elapsed.emplace_back(ns);
  curve.period = Duration{json.at("period").get<std::int64_t>()};
  take("diverged", curve.diverged);
  take("payload", curve.payload_bytes);
  take("encoded", curve.encoded_bytes);
  take("wan_payload", curve.wan_payload_bytes);
  take("wan_encoded", curve.wan_encoded_bytes);
  take("between_stages", curve.between_stages);
  take("wan_between_stages", curve.wan_between_stages);
  take("wan_nominal", curve.wan_nominal_bytes);
  take("ops", curve.ops);
  take("overran", curve.overran);
  take("messages", curve.checks.messages);
  take("blocks", curve.checks.blocks);
  take("corrupted", curve.checks.corrupted);
  take("parts_met", curve.parts_met);
  take("parts_fresh", curve.parts_fresh);
  take("versions", curve.versions);
  if (json.contains("lost")) curve.lost_relative = number_of(json["lost"]);
  if (json.contains("predicted_fresh"))
    curve.predicted_fresh_share = json["predicted_fresh"].get<double>();
  if (json.contains("predicted_period"))
    curve.predicted_period = Duration{json["predicted_period"].get<std::int64_t>()};
  if (json.contains("iterations_to_target"))
    curve.iterations_to_target = json["iterations_to_target"].get<int>();
  if (json.contains("time_to_target"))
    curve.time_to_target = Duration{json["time_to_target"].get<std::int64_t>()};
  if (json.contains("replay"))
    curve.replay = ReplayResult{json["replay"][0].get<bool>(), json["replay"][1].get<bool>(),
                                number_of(json["replay"][2])};
  for (const auto ns : json.at("longer_at_first").get<std::vector<std::int64_t>>())
    curve.longer_at_first.emplace_back(ns);
  if (json.contains("replicas_equal")) curve.replicas_equal = json["replicas_equal"].get<bool>();
  const nlohmann::ordered_json& points = json.at("points");
  for (const auto& point : points)
    curve.points.push_back({point[0].get<int>(), Duration{point[1].get<std::int64_t>()},
                            number_of(point[2]), number_of(point[3])});
  if (json.contains("adaptation")) curve.adaptation = adaptation_of_state(json["adaptation"]);
  return curve;
}

TrainProgress::TrainProgress(const comm::Communicator& world, std::filesystem::path directory,
                             bool resume, const nlohmann::json& asked)
    : world_{world}, directory_{std::move(directory)} {
  const std::string text = on_rank0(world, [&]() -> std::string {
    const std::filesystem::path file = directory_ / kFile;
    const bool complete = std::filesystem::exists(directory_ / "record.json");
    if (!resume || !std::filesystem::exists(directory_) || std::filesystem::is_empty(directory_)) {
      require_free(directory_);
      std::filesystem::create_directories(directory_);
      json_ = {{"asked", asked}, {"curves", nlohmann::ordered_json::object()}};
      write();
      settle({});
      return json_.dump();
    }
    const std::filesystem::path found = complete ? directory_ / kInput : file;
    if (!std::filesystem::exists(found))
      fail("--resume: {} holds no run that goes on ({} is missing). Give --out another directory.",
           directory_.string(), found.filename().string());
    auto kept = nlohmann::ordered_json::parse(read_text_file(found), nullptr, false);
    if (!is_of_a_run(kept, complete))
      fail("--resume: {} is damaged (it is no JSON of a run). Begin anew, in another directory.",
           found.string());
    if (complete) {
      kept["complete"] = kept.value("wrong", "");
      std::filesystem::remove(file);  // it may have ended before it could forget()
      std::filesystem::remove(directory_ / report::kJournalName);
    }
    const auto may_differ = [&](const std::string& key) {  // of a run of an older program
      return complete && (key == "commit" || !kept["asked"].contains(key));
    };
    for (const auto& [key, value] : asked.items())
      if (kept.at("asked").value(key, nlohmann::json{}) != value && !may_differ(key))
        fail("--resume: the run in {} had another {} (results would mix). Ask for the same.",
             directory_.string(), key);
    return kept.dump();
  });
  json_ = nlohmann::ordered_json::parse(text);
  if (!json_.contains("complete")) return;
  complete_ = json_["complete"].get<std::string>();
  remove_states(-1);
}

void TrainProgress::announce(int curves, const nlohmann::json& environment) {
  if (world_.rank() != 0) return;
  journal_ = std::make_unique<Journal>(directory_);
  report::AnnouncedRun run{.benchmark = "bench_train", .unit = "exchange", .series_total = curves};
  if (environment.is_object()) run.cores = report::busiest_host(environment).cores;
  journal_->add(report::entry_of(run));
}

void TrainProgress::begin(const std::string& name, int exchanges) {
  name_ = name;
  exchanges_ = exchanges;
  const auto under_way = json_.find("under_way");
  const bool goes_on = under_way != json_.end() && under_way->at("name") == name_;
  tell(goes_on ? under_way->at("iterations").get<int>() : 0, {});
}

/// Exchanges follow each other in a stream: the period is that of the second half, as in the
/// record.
void TrainProgress::tell(int done, const TrainCurve& curve) {
  if (!journal_) return;
  auto series = std::ranges::find(told_, name_);
  if (series == told_.end()) series = told_.insert(series, name_);
  report::FinishedStep step{.series = static_cast<int>(series - told_.begin()),
                            .name = name_,
                            .done = done,
                            .total = exchanges_};
  const Duration period = curve.period > Duration::zero() ? curve.period : curve.mean_period();
  if (period > Duration::zero()) step.mean_ns = static_cast<double>(period.count());
  if (curve.predicted_period)
    step.predicted_ns = static_cast<double>(curve.predicted_period->count());
  if (!curve.losses.empty() && std::isfinite(curve.losses.back())) step.loss = curve.losses.back();
  journal_->add({{"watched", entry_of(step)}});
}

void TrainProgress::write() const {
  const std::string text = json_.dump();
  replace_file(directory_ / kFile, {std::as_bytes(std::span{text})});
}

std::filesystem::path TrainProgress::state_file(int iterations) const {
  return directory_ / fmt::format("{}.{}.state", iterations, world_.rank());
}

TrainCurve TrainProgress::curve_of(const nlohmann::ordered_json& kept) const {
  try {
    return curve_of_state(kept);
  } catch (const std::exception& problem) {  // of all ranks: they have the same text
    throw CollectiveError{
        fmt::format("--resume: {} is damaged ({}: {}). Begin anew, in another directory.",
                    (directory_ / kFile).string(), name_, problem.what())};
  }
}

bool TrainProgress::find(TrainCurve& curve) {
  const nlohmann::ordered_json& curves = json_.at("curves");
  const auto found = curves.find(name_);
  if (found == curves.end()) return false;
  curve = curve_of(*found);
  tell(exchanges_, curve);
  return true;
}

void TrainProgress::add(const TrainCurve& curve) {
  const std::string text = on_rank0(world_, [&] {
    json_["curves"][name_] = curve_state(curve);
    json_.erase("under_way");
    write();
    return json_["curves"][name_].dump();
  });
  json_["curves"][name_] = nlohmann::ordered_json::parse(text);
  json_.erase("under_way");
  remove_states(-1);
  tell(exchanges_, curve);
}

int TrainProgress::load(TrainCurve& curve, std::vector<std::byte>& state) {
  const auto found = json_.find("under_way");
  if (found == json_.end() || found->at("name") != name_) return 0;
  const int iterations = found->at("iterations").get<int>();
  std::string refused;
  try {
    state = read_state(state_file(iterations), {name_, iterations, world_.rank(), world_.size()});
  } catch (const Error& error) {
    refused = error.what();
  }
  fail_together(world_, refused);
  curve = curve_of(found->at("curve"));
  return iterations;
}

/// First the states of all ranks, then the word that they are there, then the old ones go.
void TrainProgress::save(int iterations, const TrainCurve& curve,
                         std::span<const std::byte> state) {
  write_state(state_file(iterations), {name_, iterations, world_.rank(), world_.size()}, state);
  world_.barrier();
  (void)on_rank0(world_, [&]() -> std::string {
    json_["under_way"] = {
        {"name", name_}, {"iterations", iterations}, {"curve", curve_state(curve)}};
    write();
    return {};
  });
  remove_states(iterations);
  tell(iterations, curve);
}

void TrainProgress::remove_states(int but_of) const {
  const std::string ours = fmt::format(".{}.state", world_.rank());
  for (const auto& entry : std::filesystem::directory_iterator{directory_}) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if ((name.ends_with(ours) || name.ends_with(ours + ".new")) &&
        entry.path() != state_file(but_of))
      std::filesystem::remove(entry.path(), ignored);
  }
}

void TrainProgress::settle(const std::string& wrong) {
  if (world_.rank() != 0) return;
  const std::string text =
      nlohmann::ordered_json{{"asked", json_.at("asked")}, {"wrong", wrong}}.dump();
  replace_file(directory_ / kInput, {std::as_bytes(std::span{text})});
}

void TrainProgress::forget() {
  remove_states(-1);  // of a curve whose end the last run kept, and nothing after it
  (void)on_rank0(world_, [&]() -> std::string {
    std::filesystem::remove(directory_ / kFile);
    if (journal_) journal_->remove();
    return {};
  });
}

}  // namespace longhaul::harness
