#include "harness/layers/beside.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <future>

#include "base/error.hpp"
#include "nn/cuda/side_traffic.hpp"
#include "nn/layers/chunk.hpp"

namespace longhaul::harness {
namespace {

constexpr std::uint64_t kWeightSeed = 7;
static_assert(nn::kSumBlocks == 16, "kBesideSum names it");

/// One layer that trains: F and B, then F, D and W, a gap after each backward, and so on.
class TrainedLayer {
public:
  TrainedLayer(std::unique_ptr<nn::TensorOps> on, const nn::ModelShape& shape)
      : math{std::move(on)},
        marks{nn::make_work_marks(*math)},
        memory{*math, 0},
        chunk_{*math, memory, shape, {1, 1}, nn::Recompute::off, kWeightSeed},
        count_{shape.boundary()} {}

  static constexpr std::array kParts{"F", "B", "gap", "F", "D", "W", "gap"};

  /// Inputs are there beforehand: a copy right before a block would clear the cache for it.
  void prepare(int rounds) {
    supply_.clear();
    for (std::uint64_t i = 0; i < 4 * to_size(rounds); ++i) {
      supply_.push_back(memory.take(count_, "a benchmark's inputs"));
      math->fill_random(100 + i % 2, 1, supply_.back().view());
    }
    math->finish();
  }
  void begin() {
    marks->clear();
    marks->mark();
  }

  /// 7 marks: an end of each of kParts.
  void round(const std::function<void()>& in_gap) {
    constexpr MicrobatchId kOne{};
    output_ = chunk_.forward(kOne, {}, next());
    marks->mark();
    static_cast<void>(chunk_.backward(kOne, {}, next()));
    marks->mark();
    in_gap();
    marks->mark();
    output_ = chunk_.forward(kOne, {}, next());
    marks->mark();
    static_cast<void>(chunk_.backward_input(kOne, {}, next()));
    marks->mark();
    chunk_.backward_weight(kOne, {});
    marks->mark();
    in_gap();
    marks->mark();
  }

  [[nodiscard]] std::vector<float> output() const {
    std::vector<float> numbers(output_.view().count);
    math->copy_out(output_.view(), numbers);
    return numbers;
  }

  std::unique_ptr<nn::TensorOps> math;
  std::unique_ptr<nn::WorkMarks> marks;
  nn::DeviceMemory memory;

private:
  /// Inputs and gradients by turns, from the last one on.
  [[nodiscard]] nn::Buffer next() {
    nn::Buffer one = std::move(supply_.back());
    supply_.pop_back();
    return one;
  }
  nn::Chunk chunk_;
  std::size_t count_;
  std::vector<nn::Buffer> supply_;
  nn::Buffer output_;
};

/// A prompt that passes through the same layer again and again: its output is its next input.
class Prompt {
public:
  Prompt(nn::TensorOps& math, nn::DeviceMemory& memory, nn::ModelShape shape, int tokens)
      : chunk_{math, memory, with_tokens(shape, tokens), {1, 1}, nn::Recompute::off, kWeightSeed} {
    const std::size_t count = with_tokens(shape, tokens).boundary();
    passing_ = memory.take(count, "a prompt");
    math.fill_random(3, 1, passing_.view());
    pass();
  }
  void pass() {
    passing_ = chunk_.forward(MicrobatchId{}, {}, std::move(passing_));
    chunk_.drop(MicrobatchId{});
  }

private:
  static nn::ModelShape with_tokens(nn::ModelShape shape, int tokens) {
    shape.batch = 1;
    shape.sequence = tokens;
    return shape;
  }
  nn::Chunk chunk_;
  nn::Buffer passing_;
};

/// Gives a stream pass after pass, from a thread of its own, until it is told to stop: so far ahead
/// that the stream never waits for the host.
class SideLane {
public:
  SideLane(nn::TensorOps& math, std::function<void()> pass)
      : marks{nn::make_work_marks(math)}, pass_{std::move(pass)} {}

  SideLane(const SideLane&) = delete;
  SideLane& operator=(const SideLane&) = delete;
  ~SideLane() { stop_ = true; }  // what std::async gave waits for the thread

  /// Returns when the first pass is over.
  void start() {
    stop_ = begun_ = false;
    marks->clear();
    ended_ = std::async(std::launch::async, [this] { run(); });
    begun_.wait(false);
  }
  /// Returns when all passes are over; throws what one of them threw.
  void stop() {
    stop_ = true;
    ended_.get();
  }
  /// Seconds of each of so many passes, with nothing beside them.
  [[nodiscard]] std::vector<double> alone(int passes) {
    marks->clear();
    marks->mark();
    for (int i = 0; i <= passes; ++i) {
      pass_();
      marks->mark();
    }
    const std::vector<double> at = marks->seconds_since(*marks);
    std::vector<double> seconds;
    for (std::size_t i = 1; i + 1 < at.size(); ++i) seconds.push_back(at[i + 1] - at[i]);
    return seconds;
  }

  std::unique_ptr<nn::WorkMarks> marks;

private:
  void run() {
    constexpr std::size_t kAhead = 3;
    try {
      marks->enter();
      marks->mark();
      while (!stop_) {
        pass_();
        marks->mark();
        if (marks->count() <= kAhead) continue;
        marks->wait_for(marks->count() - kAhead);
        tell_begun();
      }
      marks->wait_for(marks->count() - 1);
    } catch (...) {
      tell_begun();
      throw;
    }
  }
  void tell_begun() {
    begun_ = true;
    begun_.notify_all();
  }
  std::function<void()> pass_;
  std::atomic<bool> stop_{false}, begun_{false};
  std::future<void> ended_;
};

/// A case, and who plays in it.
struct Played {
  BesideCase result;
  TrainedLayer* layer = nullptr;
  std::function<void()> in_gap = [] {};
  SideLane* side = nullptr;  ///< beside the layer, or where in_gap is set in its gaps
  bool in_order = false;
};

void keep_blocks(const std::vector<double>& at, BesideCase& result, bool gaps) {
  constexpr std::size_t kEach = TrainedLayer::kParts.size();
  const auto part = [&](const std::string& name) -> LayerPart& {
    const auto found = std::find_if(result.parts.begin(), result.parts.end(),
                                    [&](const LayerPart& one) { return one.name == name; });
    LONGHAUL_ASSERT(found != result.parts.end(), "no part {}", name);
    return *found;
  };
  for (std::size_t i = kEach; i + 1 < at.size(); ++i) {  // the first round is the warm-up
    const std::string name = TrainedLayer::kParts[i % kEach];
    if (name != "gap")
      part(name).seconds.push_back(at[i + 1] - at[i]);
    else if (gaps)
      result.side->during.push_back(at[i + 1] - at[i]);
    if (i % kEach == 0) part("F+B").seconds.push_back(at[i + 2] - at[i]);
  }
}

/// Some rounds of a case, and as much of the work beside it alone.
void play(Played& played, int rounds) {
  TrainedLayer& layer = *played.layer;
  SideLane* const side = played.side;
  if (side != nullptr) {
    const std::vector<double> alone = side->alone(4 * rounds);
    std::vector<double>& all = played.result.side->alone;
    all.insert(all.end(), alone.begin(), alone.end());
  }
  layer.prepare(rounds + 1);
  const bool beside = side != nullptr && !played.in_order;
  if (beside) side->start();
  layer.begin();
  for (int round = 0; round <= rounds; ++round) layer.round(played.in_gap);
  layer.math->finish();
  if (beside) side->stop();
  const std::vector<double> at = layer.marks->seconds_since(beside ? *side->marks : *layer.marks);
  keep_blocks(at, played.result, played.in_order);
  if (!beside) return;
  const std::vector<double> passes = side->marks->seconds_since(*side->marks);
  for (std::size_t i = 0; i + 1 < passes.size(); ++i)
    if (passes[i] >= at.front() && passes[i + 1] <= at.back())
      played.result.side->during.push_back(passes[i + 1] - passes[i]);
}

void expect_like(const std::vector<float>& output, const std::vector<float>& alone,
                 const std::string& name) {
  double off = 0, length = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    off += std::pow(static_cast<double>(output[i]) - static_cast<double>(alone[i]), 2);
    length += std::pow(static_cast<double>(alone[i]), 2);
  }
  constexpr double kMost = 0.01;
  if (!(off <= kMost * kMost * length) || length == 0)
    throw Error{fmt::format("the output of a layer differs by {:.3g} in case '{}' (its memory was "
                            "written by another stream, or it is no number). Run the tests.",
                            std::sqrt(off / length), name),
                ExitCode::answer_is_no};
}

/// All that plays, and the cases in the order of their table.
class Stage {
public:
  Stage(const MathMaker& make, const BesideOptions& options) : make_{make}, options_{options} {
    normal_ = std::make_unique<TrainedLayer>(make(cuda::Urgency::normal), options.shape);
    add("alone", "", *normal_);
    if (options.prefill) add_prefill();
    if (options.traffic && options.streams) add_traffic();
  }
  [[nodiscard]] std::vector<BesideCase> run();

private:
  Played& add(std::string name, std::string against, TrainedLayer& layer) {
    Played& one = cases_.emplace_back();
    one.result = {std::move(name), std::move(against), {}, std::nullopt};
    for (const char* block : {"F", "B", "D", "W", "F+B"})
      one.result.parts.push_back({"block", block, 0, 0, {}});
    one.layer = &layer;
    return one;
  }
  SideLane& lane(nn::TensorOps& math, std::function<void()> pass) {
    return *lanes_.emplace_back(std::make_unique<SideLane>(math, std::move(pass)));
  }
  nn::TensorOps& side_math() {
    if (!side_math_) {
      side_math_ = make_(cuda::Urgency::normal);
      side_memory_ = std::make_unique<nn::DeviceMemory>(*side_math_, 0);
    }
    return *side_math_;
  }
  void add_prefill();
  void add_traffic();

  const MathMaker& make_;
  BesideOptions options_;
  std::unique_ptr<TrainedLayer> normal_, high_;
  std::unique_ptr<nn::TensorOps> side_math_;
  std::unique_ptr<nn::DeviceMemory> side_memory_;
  std::vector<std::unique_ptr<Prompt>> prompts_;
  std::vector<std::unique_ptr<nn::SideTraffic>> traffic_;
  std::vector<std::unique_ptr<SideLane>> lanes_;
  std::vector<Played> cases_;
};

void Stage::add_prefill() {
  const auto prompt = [&](nn::TensorOps& math, nn::DeviceMemory& memory) -> SideLane& {
    Prompt* const made =
        prompts_
            .emplace_back(std::make_unique<Prompt>(math, memory, options_.shape, options_.prompt))
            .get();
    return lane(math, [made] { made->pass(); });
  };
  const SideWork work{"prefill", 0, {}, {}};
  Played& in_order = add("prefill in order, in the gaps", "alone", *normal_);
  in_order.side = &prompt(*normal_->math, normal_->memory);
  in_order.in_gap = [made = prompts_.back().get()] { made->pass(); };
  in_order.in_order = true;
  in_order.result.side = work;
  if (!options_.streams) return;
  high_ = std::make_unique<TrainedLayer>(make_(cuda::Urgency::high), options_.shape);
  add("alone, high priority", "", *high_);
  nn::TensorOps& math = side_math();
  SideLane& beside = prompt(math, *side_memory_);
  for (const bool equal : {false, true}) {
    Played& one = equal ? add("prefill, equal priority", "alone", *normal_)
                        : add("prefill, lower priority", "alone, high priority", *high_);
    one.side = &beside;
    one.result.side = work;
  }
}

void Stage::add_traffic() {
  const std::pair<nn::TrafficKind, const char*> kinds[] = {
      {nn::TrafficKind::copy, "copy on the device"},
      {nn::TrafficKind::sum, kBesideSum},
      {nn::TrafficKind::from_pinned, kBesideHost}};
  for (const auto& [kind, name] : kinds) {
    nn::SideTraffic* const made =
        traffic_.emplace_back(nn::make_side_traffic(side_math(), kind, options_.traffic_bytes))
            .get();
    Played& one = add(name, "alone", *normal_);
    one.side = &lane(*side_math_, [made] { made->pass(); });
    one.result.side = SideWork{name, static_cast<double>(options_.traffic_bytes), {}, {}};
  }
}

std::vector<BesideCase> Stage::run() {
  const int rounds = std::max(1, (options_.samples + options_.turns - 1) / options_.turns);
  std::vector<float> alone;
  for (int turn = 0; turn < options_.turns; ++turn)
    for (Played& one : cases_) {
      play(one, rounds);
      if (alone.empty()) alone = one.layer->output();
      if (turn == 0) expect_like(one.layer->output(), alone, one.result.name);
    }
  std::vector<BesideCase> results;
  for (Played& one : cases_) results.push_back(std::move(one.result));
  return results;
}

}  // namespace

std::vector<BesideCase> measure_beside(const MathMaker& make, const BesideOptions& options) {
  return Stage{make, options}.run();
}

std::vector<LayerPart> time_loads(nn::TensorOps& math, double parameters, int samples) {
  const auto bytes = 2 * static_cast<std::size_t>(parameters);
  std::vector<LayerPart> parts;
  for (const auto& [kind, name] :
       {std::pair{nn::TrafficKind::from_pinned, "weights from pinned memory"},
        {nn::TrafficKind::from_pageable, "weights from ordinary memory"}}) {
    const std::unique_ptr<nn::SideTraffic> traffic = nn::make_side_traffic(math, kind, bytes);
    SideLane lane{math, [&] { traffic->pass(); }};
    parts.push_back({"load", name, 0, static_cast<double>(bytes), lane.alone(samples)});
  }
  return parts;
}

}  // namespace longhaul::harness
