#include "prefill/pass_filler.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "prefill/prompt/passes.hpp"

namespace longhaul::prefill {
namespace {

constexpr std::int64_t kMostPassTokens = 1'000'000;  // without a profile, whose last size is it

}  // namespace

PassFiller::PassFiller(const IterationBubbles& iteration, const Served& served,
                       const std::vector<Request>& file, const BacklogOptions& options)
    : iteration_{iteration},
      served_{served},
      requests_{file},
      options_{options},
      most_refused_{std::ssize(file)},
      own_(to_size(iteration.gpus)) {
  for (const Bubble& bubble : iteration.bubbles)
    longest_ = std::max(longest_, bubble.length() - served.model.guard);
}

void PassFiller::refill(Duration now) {
  for (std::int64_t refused = 0;
       std::ssize(queue_) < options_.waiting && refused < most_refused_;) {
    Request request = requests_.next(now);
    const auto whole = served_.model.time(request.tokens);
    const bool is_too_long = served_.model.chunk == 0 && whole && *whole > longest_;
    if (whole && !is_too_long) {
      queue_.push_back({std::move(request)});
      refused = 0;
      continue;
    }
    ++refused;
    decisions_.push_back(
        {.request = request.id,
         .arrival = now,
         .tokens = request.tokens,
         .refused = is_too_long ? RefusalReason::too_long : RefusalReason::profile});
  }
}

const PassFiller::Prompt& PassFiller::candidate(const std::optional<Prompt>& own,
                                                std::size_t i) const {
  if (own) return i == 0 ? *own : queue_[i - 1];
  return queue_[i];
}

/// The pass of so many tokens of the first prompts; without chunks all of each.
std::optional<PassFiller::Pass> PassFiller::pass_of(const std::optional<Prompt>& own,
                                                    std::int64_t tokens) const {
  Pass pass;
  std::vector<PassPart> parts;
  const std::size_t prompts = std::min(queue_.size() + (own ? 1 : 0), to_size(served_.model.batch));
  for (std::size_t i = 0; i < prompts && tokens > 0; ++i) {
    const Prompt& prompt = candidate(own, i);
    const std::int64_t left = prompt.request.tokens - prompt.computed;
    if (served_.model.chunk == 0 && left > tokens) break;
    const std::int64_t taken = std::min(left, tokens);
    parts.push_back({prompt.computed, taken});
    pass.tokens.push_back(taken);
    tokens -= taken;
  }
  if (parts.empty()) return std::nullopt;
  const auto time = pass_time(served_.model, parts);
  if (!time) return std::nullopt;
  pass.time = *time;
  return pass;
}

bool PassFiller::is_worth_it(const std::optional<Prompt>& own, const Pass& pass) const {
  std::vector<PassPart> parts;
  for (std::size_t i = 0; i < pass.tokens.size(); ++i)
    parts.push_back({candidate(own, i).computed, pass.tokens[i]});
  return is_worth(served_.model, parts, pass.time);
}

/// The pass of the most tokens that fits; nullopt: none, or none that is worth its time.
std::optional<PassFiller::Pass> PassFiller::fullest_pass(const std::optional<Prompt>& own,
                                                         Duration room) const {
  const ServedModel& model = served_.model;
  std::int64_t most = model.chunk;
  if (most == 0) {
    if (queue_.empty()) return std::nullopt;
    most = kMostPassTokens;
    if (!model.profile.empty()) most = model.profile.back().tokens;
  }
  const auto fitting = [&](std::int64_t tokens) {
    auto pass = pass_of(own, tokens);
    if (pass && pass->time > room) pass.reset();
    return pass;
  };
  std::optional<Pass> best = fitting(most);
  if (best) return best;
  for (std::int64_t low = 1, high = most - 1; low <= high;) {
    const std::int64_t middle = low + (high - low) / 2;
    const auto pass = pass_of(own, middle);
    const bool fits = !pass || pass->time <= room;  // without any prompt: too few tokens
    if (pass && fits) best = pass;
    (fits ? low : high) = fits ? middle + 1 : middle - 1;
  }
  if (best && model.chunk > 0 && !is_worth_it(own, *best)) best.reset();
  return best;
}

void PassFiller::finish(const Prompt& prompt, std::int32_t pipeline, bool is_done) {
  const PlacedPass& last = prompt.passes.back();
  Decision decision{.request = prompt.request.id,
                    .arrival = prompt.request.arrival,
                    .tokens = prompt.request.tokens,
                    .pipeline = pipeline,
                    .start = prompt.passes.front().start,
                    .end = last.start + last.time,
                    .compute = prompt.compute,
                    .passes = prompt.passes};
  decision.unfinished = !is_done;
  decisions_.push_back(std::move(decision));
}

void PassFiller::run(const Pass& pass, Duration start, std::int32_t pipeline,
                     std::optional<Prompt>& own) {
  std::vector<Prompt> prompts;
  if (own) prompts.push_back(std::move(*own));
  own.reset();
  while (prompts.size() < pass.tokens.size()) {
    prompts.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  std::int64_t in_pass = 0, upto = 0;
  for (const std::int64_t tokens : pass.tokens) in_pass += tokens;
  const auto share = [&](std::int64_t tokens) {  // rounded so that shares add up
    return Duration{static_cast<std::int64_t>(static_cast<double>(pass.time.count()) *
                                              static_cast<double>(tokens) /
                                              static_cast<double>(in_pass))};
  };
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Prompt& prompt = prompts[i];
    const std::int64_t tokens = pass.tokens[i];
    prompt.compute += (upto + tokens == in_pass ? pass.time : share(upto + tokens)) - share(upto);
    upto += tokens;
    prompt.computed += tokens;
    prompt.passes.push_back({start, pass.time, tokens, in_pass});
    if (prompt.computed == prompt.request.tokens)
      finish(prompt, pipeline, true);
    else
      own = std::move(prompt);
  }
}

void PassFiller::fill_bubble(const Bubble& bubble, Duration begin, std::int32_t pipeline) {
  const Duration opens = begin + bubble.start;
  Duration start = opens;
  std::optional<Prompt>& own = own_[at(bubble.rank)];
  for (Duration room = bubble.length() - served_.model.guard; room > Duration{};) {
    refill(opens);
    const auto pass = fullest_pass(own, room);
    if (!pass) return;
    run(*pass, start, pipeline, own);
    start += pass->time;
    room -= pass->time;
  }
}

/// What is unfinished waits again, before the others.
void PassFiller::begin_anew() {
  for (std::size_t rank = own_.size(); rank-- > 0;) {
    if (!own_[rank]) continue;
    queue_.push_front({std::move(own_[rank]->request)});
    own_[rank].reset();
  }
}

std::vector<Decision> PassFiller::fill() {
  std::vector<Bubble> bubbles = iteration_.bubbles;
  std::ranges::stable_sort(bubbles, {}, &Bubble::start);
  std::vector<std::int32_t> pipelines(to_size(iteration_.gpus), -1);
  for (const Pipeline& pipeline : served_.serving.pipelines)
    pipelines[at(pipeline.ranks.front())] = pipeline.number;
  for (std::int64_t i = 0; i < options_.iterations; ++i) {
    for (const Bubble& bubble : bubbles)
      if (pipelines[at(bubble.rank)] >= 0)
        fill_bubble(bubble, i * iteration_.period, pipelines[at(bubble.rank)]);
    if (options_.apart) begin_anew();
  }
  for (std::size_t rank = 0; rank < own_.size(); ++rank)
    if (own_[rank]) finish(*own_[rank], pipelines[rank], false);
  return std::move(decisions_);
}

}  // namespace longhaul::prefill
