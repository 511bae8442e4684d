#include "harness/training/train_method.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/kept_share.hpp"
#include "base/program/option_values.hpp"

namespace longhaul::harness {
namespace {

/// All numbers travel, summed in the site first: no exchange has fewer bytes on the WAN.
void make_dense(Training& train, CompressMethod method) {
  train.compress.method = method;
  train.compress.exchange = SetExchange::sites;
  train.staleness = 0;
}

void make_sparse(Training& train, CompressMethod method) {
  train.compress.method = method;
  train.staleness = 0;
}

struct NamedMethod {
  const char* name;
  const char* help;
  void (*apply)(Training& train);
};

constexpr std::array kMethods{
    NamedMethod{"none", "all numbers, as parts are ready (DistributedDataParallel)",
                [](Training& train) {
                  make_dense(train, CompressMethod::none);
                  train.serve = Serve::arrival;
                }},
    NamedMethod{"byteps",
                "all numbers, the part that is needed first before others (ByteScheduler)",
                [](Training& train) {
                  make_dense(train, CompressMethod::none);
                  train.serve = Serve::deadline;
                }},
    NamedMethod{"fp16", "all numbers, as halves",
                [](Training& train) {
                  make_dense(train, CompressMethod::fp16);
                  train.serve = Serve::arrival;
                }},
    NamedMethod{"int8", "all numbers, as bytes with a scale for each 128",
                [](Training& train) {
                  make_dense(train, CompressMethod::int8);
                  train.serve = Serve::arrival;
                }},
    NamedMethod{"block", "the blocks with the largest means; the rest of the scenario's [train]",
                [](Training& train) { make_sparse(train, CompressMethod::block); }},
    NamedMethod{"threshold", "the blocks above a threshold that follows",
                [](Training& train) { make_sparse(train, CompressMethod::threshold); }},
    NamedMethod{"topk", "the largest numbers",
                [](Training& train) { make_sparse(train, CompressMethod::topk); }},
    NamedMethod{"randomk", "blocks at random",
                [](Training& train) { make_sparse(train, CompressMethod::randomk); }},
    NamedMethod{"stella", "the scenario's [train] as it is (StellaTrain)", [](Training&) {}},
};

template <typename Enum>
Enum value_of(const std::string& method, const std::string& key, const std::string& value) {
  return choice<Enum>(fmt::format("--methods {}: {}", method, key).c_str(), value);
}

void set_key(TrainMethod& method, const std::string& key, const std::string& value) {
  Training& train = method.scenario.train;
  GradientCompression& compress = train.compress;
  const std::string what = fmt::format("--methods {}: {}", method.name, key);
  if (key == "keep") {
    const auto share = kept_share_in(value);
    if (!share || !is_kept_share(*share))
      fail("{} = \"{}\" (a share above 0 and at most 1). Write keep=1%.", what, value);
    compress.keep = *share;
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
        "staleness, serve, lazy).",
        what);
  }
}

}  // namespace

TrainMethod train_method(const std::string& text, const Scenario& scenario,
                         const compress::OptimizerSettings& optimizer) {
  const std::vector<std::string> words = words_of(text, ':');
  const auto named = std::ranges::find_if(
      kMethods, [&](const NamedMethod& each) { return each.name == words[0]; });
  if (named == kMethods.end()) {
    std::vector<std::string> names;
    for (const NamedMethod& each : kMethods) names.emplace_back(each.name);
    fail("--methods: there is no \"{}\" ({}).", words[0], fmt::join(names, ", "));
  }
  TrainMethod method{text, scenario, optimizer};
  named->apply(method.scenario.train);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t sign = words[i].find('=');
    if (sign == std::string::npos)
      fail("--methods {}: \"{}\" says nothing (KEY=VALUE, as in {}:keep=5%).", text, words[i],
           words[0]);
    set_key(method, words[i].substr(0, sign), words[i].substr(sign + 1));
  }
  training::check_exchange(method.scenario.train.compress);
  return method;
}

std::vector<TrainMethod> train_methods(const std::string& list, const Scenario& scenario,
                                       const compress::OptimizerSettings& optimizer) {
  std::vector<TrainMethod> methods;
  for (const std::string& each : words_of(list, ','))
    methods.push_back(train_method(each, scenario, optimizer));
  for (std::size_t i = 0; i < methods.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (methods[i].name == methods[j].name)
        fail("--methods: \"{}\" stands there twice. Name it once.", methods[i].name);
  return methods;
}

std::string train_methods_help() {
  std::string help;
  for (const NamedMethod& each : kMethods) help += fmt::format("\n  {}: {}", each.name, each.help);
  return help;
}

}  // namespace longhaul::harness
