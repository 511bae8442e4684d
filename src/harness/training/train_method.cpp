#include "harness/training/train_method.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/kept_share.hpp"
#include "base/program/option_values.hpp"
#include "harness/training/train_rivals.hpp"
#include "planner/tune/family.hpp"
#include "report/adapted_stream.hpp"
#include "scenario/training/activation_sizes.hpp"

namespace longhaul::harness {
namespace {

using training::Rival;

template <Rival kRival>
void make(TrainMethod& method) {
  make_rival_method(method, kRival);
}

/// All numbers travel, summed in the site first: between two sites no exchange has fewer bytes.
void make_dense(TrainMethod& method, CompressMethod compress, Serve serve = Serve::arrival) {
  Training& train = method.scenario.train;
  train.serve = serve;
  train.compress.method = compress;
  train.compress.exchange = SetExchange::sites;
  train.staleness = 0;
  method.leave_host();
}

void make_sparse(TrainMethod& method, CompressMethod compress) {
  method.scenario.train.compress.method = compress;
  method.scenario.train.staleness = 0;
}

/// The largest numbers of each replica, chosen on the device, and summed in the site; what is
/// needed first goes first (BytePS).
void make_of_gpus(TrainMethod& method) {
  make_sparse(method, CompressMethod::topk);
  method.scenario.train.compress.share = KeptShare::each;
  method.scenario.train.compress.exchange = SetExchange::sites;
  method.scenario.train.serve = Serve::deadline;
  method.leave_host();
}

struct NamedMethod {
  const char* name;
  const char* help;
  void (*apply)(TrainMethod& method);
};

constexpr std::array kMethods{
    NamedMethod{"none", "all numbers, as parts are ready (DistributedDataParallel)",
                [](TrainMethod& method) { make_dense(method, CompressMethod::none); }},
    NamedMethod{
        "byteps", "all numbers, the part that is needed first before others (ByteScheduler)",
        [](TrainMethod& method) { make_dense(method, CompressMethod::none, Serve::deadline); }},
    NamedMethod{"fp16", "all numbers, as halves",
                [](TrainMethod& method) { make_dense(method, CompressMethod::fp16); }},
    NamedMethod{"int8", "all numbers, as bytes with a scale for each 128",
                [](TrainMethod& method) { make_dense(method, CompressMethod::int8); }},
    NamedMethod{"block", "the blocks with the largest means; the rest of the scenario's [train]",
                [](TrainMethod& method) { make_sparse(method, CompressMethod::block); }},
    NamedMethod{"threshold", "the blocks above a threshold that follows",
                [](TrainMethod& method) { make_sparse(method, CompressMethod::threshold); }},
    NamedMethod{"topk", "the largest numbers",
                [](TrainMethod& method) { make_sparse(method, CompressMethod::topk); }},
    NamedMethod{"randomk", "blocks at random",
                [](TrainMethod& method) { make_sparse(method, CompressMethod::randomk); }},
    NamedMethod{"stella", "the scenario's [train] as it is (StellaTrain)", [](TrainMethod&) {}},
    NamedMethod{"bytepscompress",
                "the largest numbers of each replica, chosen on the device (BytePS-Compress)",
                make_of_gpus},
    NamedMethod{"espresso",
                "each tensor dense, as halves or by its largest numbers, as 25 Gbps make best",
                [](TrainMethod& method) {
                  make_of_gpus(method);
                  method.chooses_for_parts = true;
                }},
    NamedMethod{"dgc", "the largest numbers of gathered momentum (deep gradient compression)",
                make<Rival::dgc>},
    NamedMethod{"demo", "the largest cosines of the momentum; steps of signs (DeMo)",
                make<Rival::demo>},
    NamedMethod{"onebit", "dense Adam, then one bit a number (1-bit Adam)", make<Rival::onebit>},
    NamedMethod{"powersgd:R", "two factors of rank R, one after the other (PowerSGD)",
                make<Rival::powersgd>},
    NamedMethod{"localsgd:H", "H steps of each replica, then the mean of their weights",
                make<Rival::localsgd>},
    NamedMethod{"diloco:H", "H steps of AdamW, then one of Nesterov with what they made (DiLoCo)",
                make<Rival::diloco>},
    NamedMethod{"streaming-diloco:H,P,tau",
                "the same in P fragments in turn, 4 bits, mixed in tau steps later",
                make<Rival::streaming_diloco>},
    NamedMethod{"sparseloco:H", "DiLoCo with the largest numbers, 2 bits each (SparseLoCo)",
                make<Rival::sparseloco>},
};

/// Without what stands for a number.
std::string_view name_of(const NamedMethod& named) {
  const std::string_view name = named.name;
  return name.substr(0, name.find(':'));
}

template <typename Enum>
Enum value_of(const std::string& method, const std::string& key, const std::string& value) {
  return choice<Enum>(fmt::format("--methods {}: {}", method, key).c_str(), value);
}

double share_of(const std::string& what, const std::string& value) {
  const auto share = kept_share_in(value);
  if (!share || !is_kept_share(*share))
    fail("{} = \"{}\" (a share above 0 and at most 1). Write 1%, say.", what, value);
  return *share;
}

/// Does it change something of that method?
bool has_key(const TrainMethod& method, const std::string& key) {
  const CompressMethod compress = method.scenario.train.compress.method;
  const bool sparse_alone = key == "keep" || key == "block" || key == "values" || key == "index" ||
                            key == "share" || key == "feedback" || key == "lazy";
  if (method.rival) return true;  // set_rival_key() knows
  if (!is_sparse(compress) && sparse_alone) return false;
  return compress != CompressMethod::topk || key != "block";
}

/// Messages between stages: nominal bytes are those that travel.
void set_activations(TrainMethod& method, const std::string& key, const std::string& value) {
  Scenario& scenario = method.scenario;
  const std::string what = fmt::format("--methods {}: {}", method.name, key);
  ActivationCompression how = scenario.train.activations.value_or(ActivationCompression{});
  if (key == "activations")
    how = {.format = value_of<ActivationFormat>(method.name, key, value)};
  else if (how.format != ActivationFormat::topk)
    fail("{} changes nothing of {}. Write activations=topk before it, or leave it out.", what,
         to_string(how.format));
  else if (key == "activations_keep")
    how.keep = share_of(what, value);
  else
    how.feedback = value_of<ActivationFeedback>(method.name, key, value);
  if (const std::string_view why = scenario::why_no_activations(scenario); !why.empty())
    fail("{} = {} ({}). Leave it out.", what, value, why);
  scenario::send_activations_as(scenario, how);
}

void set_key(TrainMethod& method, const std::string& key, const std::string& value) {
  Training& train = method.scenario.train;
  GradientCompression& compress = train.compress;
  const std::string what = fmt::format("--methods {}: {}", method.name, key);
  if (key == "activations" || key == "activations_keep" || key == "activations_feedback")
    return set_activations(method, key, value);
  if (set_rival_key(method, key, value)) return;
  if (!has_key(method, key)) fail("{} changes nothing of this method. Leave it out.", what);
  if (key == "keep") {
    compress.keep = share_of(what, value);
  } else if (key == "block") {
    compress.block = whole_number(what.c_str(), value, 1, 16);
    if (!is_kept_block(compress.block)) fail("{} = {} (1, 2, 4, 8 or 16).", what, value);
  } else if (key == "values") {
    compress.values = value_of<SetValues>(method.name, key, value);
  } else if (key == "index") {
    compress.index = value_of<SetIndex>(method.name, key, value);
  } else if (key == "exchange") {
    compress.exchange = value_of<SetExchange>(method.name, key, value);
  } else if (key == "share") {
    compress.share = value_of<KeptShare>(method.name, key, value);
  } else if (key == "feedback") {
    compress.feedback = whole_number(what.c_str(), value, 0, 1) == 1;
  } else if (key == "staleness") {
    train.staleness = whole_number(what.c_str(), value, 0, 64);
  } else if (key == "serve") {
    train.serve = value_of<Serve>(method.name, key, value);
  } else if (key == "lazy") {
    method.optimizer.lazy = value_of<compress::LazyUpdate>(method.name, key, value);
  } else {
    fail(
        "{} is no key of a method (keep, block, values, index, exchange, share, feedback, "
        "staleness, serve, lazy, activations, activations_keep, activations_feedback).",
        what);
  }
}

/// Bare numbers: of fewer than it takes, the first.
void set_numbers(TrainMethod& method, const std::string& text) {
  const std::vector<std::string> keys = number_keys(method), numbers = words_of(text, ',');
  if (numbers.size() > keys.size())
    fail("--methods {}: \"{}\" has {} numbers ({}). Give as many.", method.name, text,
         numbers.size(), fmt::join(keys, ", "));
  for (std::size_t i = 0; i < numbers.size(); ++i) set_key(method, keys[i], numbers[i]);
}

}  // namespace

TrainMethod train_method(const std::string& text, const Scenario& scenario,
                         const compress::OptimizerSettings& optimizer) {
  std::vector<std::string> words = words_of(text, ':');
  const bool is_hetero = words.back().ends_with(planner::kHetero);
  if (is_hetero) words.back().resize(words.back().size() - planner::kHetero.size());
  const auto named = std::ranges::find_if(
      kMethods, [&](const NamedMethod& each) { return name_of(each) == words[0]; });
  if (named == kMethods.end()) {
    std::vector<std::string> names;
    for (const NamedMethod& each : kMethods) names.emplace_back(name_of(each));
    fail("--methods: there is no \"{}\" ({}).", words[0], fmt::join(names, ", "));
  }
  if (scenario.train.local_steps > 1)
    fail(
        "train.local_steps = {} is simulated alone (on ranks a method says it, as in diloco:{}). "
        "Leave it out.",
        scenario.train.local_steps, scenario.train.local_steps);
  TrainMethod method{text, is_hetero ? report::by_throughput(scenario) : scenario, optimizer};
  named->apply(method);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t sign = words[i].find('=');
    if (i == 1 && sign == std::string::npos && !number_keys(method).empty()) {
      set_numbers(method, words[i]);
      continue;
    }
    if (sign == std::string::npos)
      fail("--methods {}: \"{}\" says nothing (KEY=VALUE, as in {}:keep=5%).", text, words[i],
           words[0]);
    set_key(method, words[i].substr(0, sign), words[i].substr(sign + 1));
  }
  if (method.chooses_for_parts && method.scenario.train.compress.exchange == SetExchange::sites &&
      method.scenario.train.compress.share == KeptShare::split)
    fail(
        "--methods {}: share = split with exchange = sites (sets of a site and of a replica would "
        "differ in size). Use ring or direct, or share = each.",
        text);
  training::check_exchange(method.scenario.train.compress);
  finish_rival(method);
  if (method.scenario.train.gather != GradientGather::none &&
      (method.rival || method.chooses_for_parts))
    fail(
        "--methods {}: train.gather = \"{}\" (its sets are made of a replica's own gradients). "
        "Take another method, or write --set train.gather=none.",
        text, to_string(method.scenario.train.gather));
  // There is a rate to adapt of what [train.compress] keeps alone.
  if (method.rival || method.chooses_for_parts || !is_sparse(method.scenario.train.compress.method))
    method.scenario.train.adapt.every = 0;
  if (is_hetero && method.scenario.train.adapt.every > 0)
    fail("--methods {}: the controller chooses its batches (train.adapt.every = {}). Leave {} out.",
         text, method.scenario.train.adapt.every, planner::kHetero);
  return method;
}

std::vector<TrainMethod> train_methods(const std::string& list, const Scenario& scenario,
                                       const compress::OptimizerSettings& optimizer) {
  std::vector<std::string> texts;
  for (const std::string& each : words_of(list, ',')) {
    const bool goes_on = !texts.empty() && !each.empty() && each[0] >= '0' && each[0] <= '9';
    if (goes_on)
      texts.back() += "," + each;
    else
      texts.push_back(each);
  }
  std::vector<TrainMethod> methods;
  for (const std::string& each : texts) methods.push_back(train_method(each, scenario, optimizer));
  for (std::size_t i = 0; i < methods.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (methods[i].name == methods[j].name)
        fail("--methods: \"{}\" stands there twice. Name it once.", methods[i].name);
  return methods;
}

std::string train_methods_help() {
  std::string help;
  for (const NamedMethod& each : kMethods) help += fmt::format("\n  {}: {}", each.name, each.help);
  help += fmt::format("\n  ..{}, after any: batches by the throughput of the replicas",
                      planner::kHetero);
  return help;
}

}  // namespace longhaul::harness
