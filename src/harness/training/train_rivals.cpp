#include "harness/training/train_rivals.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/program/option_values.hpp"
#include "training/model_layout.hpp"
#include "training/parts/low_rank_method.hpp"

namespace longhaul::harness {
namespace {

using training::Rival;

constexpr int kMostSteps = 10'000;

/// Keys that a rival has; the rest of the scenario's [train] is not of it.
std::vector<std::string> keys_of(Rival rival) {
  switch (rival) {
    case Rival::dgc: return {"keep", "index", "momentum", "ramp", "exchange", "staleness", "serve"};
    case Rival::demo: return {"keep", "decay", "exchange", "staleness", "serve"};
    case Rival::onebit: return {"warmup", "exchange", "staleness", "serve"};
    case Rival::powersgd: return {"rank", "exchange", "staleness", "serve"};
    case Rival::localsgd: return {"steps", "exchange", "staleness", "serve"};
    case Rival::diloco:
      return {"steps", "outer", "momentum", "inner", "exchange", "staleness", "serve"};
    case Rival::streaming_diloco:
      return {"steps", "fragments", "overlap", "mixing",   "bits",      "feedback",
              "outer", "momentum",  "inner",   "exchange", "staleness", "serve"};
    case Rival::sparseloco:
      return {"steps", "keep", "decay", "outer", "inner", "exchange", "staleness", "serve"};
  }
  return {};
}

/// A factor; of a decay and a momentum at most 1.
float factor_in(const std::string& what, const std::string& text, double most) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stopped != end || !(value >= 0 && value <= most))
    fail("{} = \"{}\" is no number from 0 to {}. Give one.", what, text, most);
  return static_cast<float>(value);
}

/// Keys of whole numbers; false where it is none of them.
bool set_number(training::RivalSettings& rival, const std::string& key, const std::string& value,
                const char* what) {
  if (key == "steps")
    rival.local_steps = whole_number(what, value, 1, kMostSteps);
  else if (key == "rank")
    rival.rank = whole_number(what, value, 1, kMostSteps);
  else if (key == "fragments")
    rival.fragments = whole_number(what, value, 1, kMostSteps);
  else if (key == "overlap")
    rival.overlap = whole_number(what, value, 0, kMostSteps);
  else if (key == "bits")
    rival.bits = whole_number(what, value, 4, 32);
  else
    return false;
  if (rival.bits != training::kFourBits && rival.bits != training::kAllBits)
    fail("{} = {} (outer gradients are of 4 bits a number, or as they are). Write 4 or 32.", what,
         value);
  return true;
}

/// Of PowerSGD, and of the fragments of Streaming DiLoCo.
void check_numbers(const TrainMethod& method) {
  const training::RivalSettings& rival = *method.rival;
  const Scenario& scenario = method.scenario;
  if (rival.rival == Rival::powersgd && rival.rank == 0)
    fail("--methods {}: its rank is missing. Write powersgd:2.", method.name);
  if (rival.rival == Rival::powersgd && scenario.model) {
    const nn::ModelShape shape = training::model_shape(scenario);
    training::check_rank(rival.rank, nn::parameter_places(shape, {0, shape.layers}).places);
  }
  if (rival.rival != Rival::streaming_diloco) return;
  if (rival.feedback && rival.bits != training::kFourBits)
    fail("--methods {}: feedback of {} bits (nothing is rounded). Leave feedback out.", method.name,
         rival.bits);
  const int between = rival.local_steps / rival.fragments;
  if (rival.local_steps % rival.fragments != 0)
    fail(
        "--methods {}: {} steps and {} fragments (fragments are exchanged as many steps after each "
        "other). Give a number of fragments that divides the steps.",
        method.name, rival.local_steps, rival.fragments);
  if (rival.overlap >= between)
    fail(
        "--methods {}: an overlap of {} steps, and {} between the exchanges of two fragments (one "
        "is over before the next begins). Give fewer than {}.",
        method.name, rival.overlap, between, between);
}

}  // namespace

void make_rival_method(TrainMethod& method, Rival rival) {
  Training& train = method.scenario.train;
  train.compress.method = CompressMethod::none;
  train.staleness = 0;
  method.leave_host();
  if (training::sends_all(rival))
    train.compress.exchange = SetExchange::sites;  // the fewest bytes on the WAN
  else if (train.compress.exchange == SetExchange::sites)
    train.compress.exchange = SetExchange::direct;
  training::RivalSettings settings;
  settings.rival = rival;
  if (rival == Rival::dgc) settings.momentum = 0.9F;
  if (rival == Rival::demo) settings.decay = 0.999F;
  const bool has_nesterov = rival == Rival::diloco || rival == Rival::streaming_diloco;
  if (has_nesterov) settings.outer_rate = 0.7F;
  if (has_nesterov) settings.momentum = 0.9F;
  if (rival == Rival::streaming_diloco) settings.bits = training::kFourBits;
  if (rival == Rival::sparseloco) settings.decay = 0.95F;
  if (has_nesterov || rival == Rival::sparseloco)
    method.optimizer.rule = compress::OptimizerRule::adamw;
  method.rival = settings;
}

std::vector<std::string> number_keys(const TrainMethod& method) {
  if (!method.rival) return {};
  if (method.rival->rival == Rival::powersgd) return {"rank"};
  if (method.rival->rival == Rival::streaming_diloco) return {"steps", "fragments", "overlap"};
  if (training::steps_locally(method.rival->rival)) return {"steps"};
  return {};
}

bool set_rival_key(TrainMethod& method, const std::string& key, const std::string& value) {
  constexpr const char* kKeys[] = {"warmup", "ramp", "steps",     "outer",   "momentum", "decay",
                                   "inner",  "rank", "fragments", "overlap", "mixing",   "bits"};
  const bool is_of_rivals = std::ranges::find(kKeys, key) != std::end(kKeys);
  if (!method.rival && !is_of_rivals) return false;
  const std::string what = fmt::format("--methods {}: {}", method.name, key);
  const std::vector<std::string> keys =
      method.rival ? keys_of(method.rival->rival) : std::vector<std::string>{};
  if (std::ranges::find(keys, key) == keys.end())
    fail("{} is no key of this method{}{}. Leave it out.", what, keys.empty() ? "" : ", which has ",
         fmt::join(keys, ", "));
  training::RivalSettings& rival = *method.rival;
  if (key == "feedback") {  // sparse methods have it, too
    rival.feedback = whole_number(what.c_str(), value, 0, 1) == 1;
    return true;
  }
  if (!is_of_rivals) return false;
  if (set_number(rival, key, value, what.c_str())) return true;
  if (key == "warmup" || key == "ramp")
    rival.warm_up = whole_number(what.c_str(), value, 1, kMostSteps);
  else if (key == "outer")
    rival.outer_rate = factor_in(what, value, 100);
  else if (key == "momentum")
    rival.momentum = factor_in(what, value, 1);
  else if (key == "decay")
    rival.decay = factor_in(what, value, 1);
  else if (key == "mixing")
    rival.mixing = factor_in(what, value, 1);
  else
    method.optimizer.rule = choice<compress::OptimizerRule>(what.c_str(), value);
  return true;
}

void finish_rival(TrainMethod& method) {
  if (!method.rival) return;
  training::RivalSettings& rival = *method.rival;
  Scenario& scenario = method.scenario;
  const GradientCompression& compress = scenario.train.compress;
  rival.keep = compress.keep;
  rival.index = static_cast<compress::IndexFormat>(compress.index);
  if (compress.exchange == SetExchange::sites && !training::sends_all(rival.rival))
    fail(
        "--methods {}: exchange = sites (a site's choice is not defined for it). Use ring or "
        "direct.",
        method.name);
  check_numbers(method);
  if (scenario.train.staleness > 0 &&
      (rival.rival == Rival::onebit || rival.rival == Rival::powersgd))
    fail("--methods {}: staleness {} ({}). Leave it out.", method.name, scenario.train.staleness,
         rival.rival == Rival::onebit
             ? "its sets hold the momentum after the last update"
             : "a gradient would change the sum that its second exchange is made of");
  if (!training::steps_locally(rival.rival)) return;
  if (scenario.train.staleness > 0)
    fail(
        "--methods {}: staleness {} (local steps begin with the weights that all have after an "
        "exchange). Leave it out.",
        method.name, scenario.train.staleness);
  if (scenario.parallel.microbatches != 1 || scenario.parallel.stages != 1)
    fail(
        "--methods {}: the scenario has {} microbatches and {} stages (each local step is of one "
        "microbatch of the whole model). Write 1 of both.",
        method.name, scenario.parallel.microbatches, scenario.parallel.stages);
  scenario.parallel.microbatches = rival.local_steps;
}

std::optional<training::RivalSettings> with_warm_up(std::optional<training::RivalSettings> rival,
                                                    int iterations) {
  constexpr int kShare = 5;
  if (rival && rival->rival == training::Rival::onebit && rival->warm_up == 0)
    rival->warm_up = std::max(1, iterations / kShare);
  return rival;
}

}  // namespace longhaul::harness
