#include "prefill/bounds.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "prefill/instances.hpp"
#include "prefill/outcome.hpp"
#include "prefill/placement.hpp"

namespace longhaul::prefill {
namespace {

std::vector<Request> prompts(std::initializer_list<std::int64_t> tokens) {
  std::vector<Request> requests;
  for (const std::int64_t count : tokens) requests.push_back({std::ssize(requests), 0ns, count});
  return requests;
}

/// The largest sum of lengths, each as often as wanted, that is at most `room`: all of them tried.
std::int64_t fullest_by_trying(const std::vector<std::int64_t>& lengths, std::int64_t room) {
  std::int64_t best = 0;
  for (const std::int64_t length : lengths)
    if (length <= room) best = std::max(best, length + fullest_by_trying(lengths, room - length));
  return best;
}

// GPipe by hand: each device has one bubble of 300 ms in 900. Less 10 ms of guard, 290 each;
// prompts of 100 and 120 ms fill 240 of them (two of 120; 220 and 200 are less).
TEST(UtilisationBounds, AreThoseWorkedOutByHand) {
  ServedModel model = linear_model(1ms);
  model.guard = 10ms;
  const Scenario scenario = serving_scenario(2, 1, model);
  const UtilisationBounds bounds =
      utilisation_bounds(find_bubbles(gpipe_rows(), 2), served_models(scenario, 1),
                         prompts({100, 120}), std::nullopt, 4);
  EXPECT_NEAR(bounds.bubbles, (1200.0 + 580) / 1800, 1e-12);
  EXPECT_NEAR(*bounds.whole_prompts, (1200.0 + 480) / 1800, 1e-4);
  EXPECT_GE(*bounds.whole_prompts, (1200.0 + 480) / 1800 - 1e-12);
  EXPECT_FALSE(bounds.mix.has_value());
  // Two prompts in four iterations.
  EXPECT_DOUBLE_EQ(*bounds.flow, (4 * 1200.0 + 220) / (4 * 1800));
  EXPECT_STREQ(bounds.reason(), "flow");
}

TEST(UtilisationBounds, WholePromptsAreTheSubsetSumsOfEachBubble) {
  Random random{5};
  for (int instance = 0; instance < 200; ++instance) {
    const Scenario scenario = serving_scenario(2, 1, linear_model(1ns));
    const IterationBubbles iteration = find_bubbles(random_rows(random, 2), 2);
    std::vector<std::int64_t> lengths;
    for (int i = 0; i < 3; ++i) lengths.push_back(random.between(2, 9));
    const UtilisationBounds bounds =
        utilisation_bounds(iteration, served_models(scenario, 1),
                           prompts({lengths[0], lengths[1], lengths[2]}), std::nullopt, 1);
    std::int64_t filled = 0;
    for (const Bubble& bubble : iteration.bubbles)
      filled += fullest_by_trying(lengths, bubble.length().count());
    EXPECT_NEAR(*bounds.whole_prompts * 2 * static_cast<double>(iteration.period.count()),
                static_cast<double>(iteration.busy.count() + filled), 1e-6)
        << "instance " << instance;
  }
}

// The mix's alone may rise where a wider guard makes a prompt too long for all bubbles: one that is
// refused keeps no shorter ones waiting.
TEST(UtilisationBounds, NeverRiseWithTheGuard) {
  Random random{11};
  int fell = 0;
  for (int instance = 0; instance < 200; ++instance) {
    const IterationBubbles iteration = find_bubbles(random_rows(random, 3), 3);
    std::vector<Request> file;
    for (std::int64_t id = 0; id < 6; ++id) file.push_back({id, 0ns, random.between(1, 9)});
    const bool is_backlog = instance % 2 == 0;
    const auto waiting = is_backlog ? std::optional{random.between(1, 6)} : std::nullopt;
    UtilisationBounds wider;
    wider.whole_prompts = wider.mix = wider.flow = 1;
    Duration longest{};
    for (const Bubble& bubble : iteration.bubbles) longest = std::max(longest, bubble.length());
    std::ptrdiff_t fitted = 6;
    for (const Duration guard : {0ns, 1ns, 2ns, 3ns}) {
      const auto fit = std::ranges::count_if(
          file, [&](const Request& each) { return each.tokens <= (longest - guard).count(); });
      const bool is_same = std::exchange(fitted, fit) == fit;
      ServedModel model = linear_model(1ns);
      model.guard = guard;
      const auto served = served_models(serving_scenario(3, 1, model), 1);
      const UtilisationBounds bounds = utilisation_bounds(iteration, served, file, waiting, 4);
      EXPECT_LE(bounds.bubbles, wider.bubbles) << instance << ", " << guard.count();
      EXPECT_LE(bounds.whole_prompts.value_or(0), *wider.whole_prompts + 1e-12);
      EXPECT_LE(bounds.flow.value_or(0), *wider.flow + 1e-12);
      if (is_same || !is_backlog) {
        EXPECT_LE(bounds.mix.value_or(0), *wider.mix + 1e-12) << instance << ", " << guard.count();
        EXPECT_LE(bounds.upper(), wider.upper() + 1e-12);
      }
      if (guard > 0ns && bounds.upper() < wider.upper() - 1e-12) ++fell;
      wider.bubbles = bounds.bubbles;
      if (bounds.whole_prompts) wider.whole_prompts = bounds.whole_prompts;
      if (bounds.mix) wider.mix = bounds.mix;
      if (bounds.flow) wider.flow = bounds.flow;
    }
  }
  EXPECT_GT(fell, 100);
}

/// The most that a queue which never empties fills of bubbles one after the other, whatever is
/// taken of those that wait: all of it tried.
class BacklogByTrying {
public:
  using Lengths = std::vector<std::int64_t>;
  BacklogByTrying(Lengths rooms, const Lengths& file, std::size_t waiting)
      : rooms_{std::move(rooms)}, waiting_{waiting} {
    const std::int64_t longest = std::ranges::max(rooms_);
    for (const std::int64_t length : file)
      if (length <= longest) file_.push_back(length);
  }
  [[nodiscard]] std::int64_t most() {
    return file_.empty() ? 0 : from(0, rooms_.front(), Lengths{}, 0);
  }

private:
  [[nodiscard]] std::int64_t from(std::size_t bubble, std::int64_t room, Lengths queue,
                                  std::size_t next) {
    for (; queue.size() < waiting_; next = (next + 1) % file_.size()) queue.push_back(file_[next]);
    std::ranges::sort(queue);
    const auto [known, is_new] = known_.try_emplace({bubble, room, next, queue}, 0);
    if (!is_new) return known->second;
    std::int64_t most = 0;
    if (bubble + 1 < rooms_.size()) most = from(bubble + 1, rooms_[bubble + 1], queue, next);
    for (std::size_t i = 0; i < queue.size(); ++i) {
      if (queue[i] > room) continue;
      Lengths rest = queue;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      most = std::max(most, queue[i] + from(bubble, room - queue[i], rest, next));
    }
    return known->second = most;
  }

  Lengths rooms_, file_;
  std::size_t waiting_;
  std::map<std::tuple<std::size_t, std::int64_t, std::size_t, Lengths>, std::int64_t> known_;
};

/// Of one GPU and one iteration, that begins with a block of `busy`.
IterationBubbles bubbles_of_lengths(const std::vector<std::int64_t>& lengths, Duration busy) {
  IterationBubbles iteration{.period = {}, .gpus = 1, .busy = {}, .bubbles = {}};
  for (const std::int64_t length : lengths) {
    const Duration start = iteration.period + busy;
    iteration.bubbles.push_back({.rank = 0, .start = start, .end = start + Duration{length}});
    iteration.period = start + Duration{length};
    iteration.busy += busy;
  }
  return iteration;
}

// Bubbles of 8 and 4; prompts of 8, 8, 8 and 3, of which one waits. The second 8 fits nowhere, and
// the 3 never comes: 8 are filled of the 11 that whole prompts could.
TEST(UtilisationBounds, OfTheMixIsMetByHand) {
  const IterationBubbles iteration = bubbles_of_lengths({8, 4}, 1ns);
  const auto served = served_models(serving_scenario(1, 1, linear_model(1ns)), 1);
  const UtilisationBounds bounds =
      utilisation_bounds(iteration, served, prompts({8, 8, 8, 3}), 1, 1);
  EXPECT_DOUBLE_EQ(*bounds.mix, (2.0 + 8) / 14);
  EXPECT_DOUBLE_EQ(*bounds.whole_prompts, (2.0 + 11) / 14);
  EXPECT_STREQ(bounds.reason(), "mix");
  EXPECT_EQ((BacklogByTrying{{8, 4}, {8, 8, 8, 3}, 1}.most()), 8);
}

TEST(UtilisationBounds, HoldForAllThatABacklogCouldFill) {
  Random random{31};
  int met = 0, by_mix = 0;
  for (int instance = 0; instance < 300; ++instance) {
    const auto lengths = [&](int count) {
      std::vector<std::int64_t> some;
      for (int i = 0; i < count; ++i) some.push_back(random.between(1, 9));
      return some;
    };
    const std::vector<std::int64_t> rooms = lengths(2), file = lengths(4);
    const std::int64_t waiting = random.between(1, 3);
    const IterationBubbles iteration = bubbles_of_lengths(rooms, 1ns);
    const auto served = served_models(serving_scenario(1, 1, linear_model(1ns)), 1);
    const UtilisationBounds bounds = utilisation_bounds(
        iteration, served, prompts({file[0], file[1], file[2], file[3]}), waiting, 2);
    const double most = static_cast<double>(
        BacklogByTrying{{rooms[0], rooms[1], rooms[0], rooms[1]}, file, to_size(waiting)}.most());
    const double bound = bounds.upper() * 2 * static_cast<double>(iteration.period.count()) -
                         2 * static_cast<double>(iteration.busy.count());
    EXPECT_LE(most, bound + 1e-6) << "instance " << instance;
    met += most > bound - 1e-6;
    by_mix += std::string{bounds.reason()} == "mix";
  }
  EXPECT_GT(met, 50);
  EXPECT_GT(by_mix, 10);
}

TEST(Backlog, StaysBelowItsBoundsInBubblesAndLosesNoRequest) {
  Random random{9};
  for (int instance = 0; instance < 200; ++instance) {
    ServedModel model = linear_model(1ns);
    model.guard = Duration{random.between(0, 1)};
    const Scenario scenario = serving_scenario(3, 1, model);
    const IterationBubbles iteration = find_bubbles(random_rows(random, 3), 3);
    const auto served = served_models(scenario, 1);
    std::vector<Request> file;
    for (std::int64_t id = 0; id < 6; ++id) file.push_back({id, 0ns, random.between(1, 9)});
    const BacklogOptions options{.waiting = random.between(1, 6), .iterations = 4, .patience = 3};
    for (const PlacementPolicy policy : {PlacementPolicy::best_fit, PlacementPolicy::earliest}) {
      const auto decisions = place_backlog(iteration, served, file, policy, options);
      const Outcome outcome = summarize_decisions(iteration, served, decisions, options.iterations);
      const UtilisationBounds bounds =
          utilisation_bounds(iteration, served, file, options.waiting, options.iterations);
      EXPECT_LE(outcome.utilisation.total, bounds.upper() + 1e-9) << "instance " << instance;
      // Each that came, in the file's order over and over, has one answer, or still waits.
      std::set<std::int64_t> answered;
      for (const Decision& each : decisions) {
        EXPECT_TRUE(answered.insert(each.request).second) << each.request << " twice";
        EXPECT_EQ(each.tokens, file[to_size(each.request) % file.size()].tokens);
      }
      EXPECT_LE(answered.empty() ? 0 : *answered.rbegin() + 1 - std::ssize(answered),
                options.waiting);
      EXPECT_EQ(outcome.offered, std::ssize(answered));
      EXPECT_EQ(outcome.done + outcome.all_refused() + outcome.unfinished, outcome.offered);
      // No two on one GPU at once, none beside a block.
      for (std::size_t i = 0; i < decisions.size(); ++i) {
        if (decisions[i].refused) continue;
        for (std::size_t j = 0; j < i; ++j)
          EXPECT_TRUE(decisions[j].refused || decisions[j].pipeline != decisions[i].pipeline ||
                      decisions[j].end <= decisions[i].start ||
                      decisions[i].end <= decisions[j].start);
        bool inside = false;
        for (const Bubble& bubble : iteration.bubbles)
          for (int k = -1; k <= options.iterations; ++k)
            inside =
                inside || (bubble.rank == decisions[i].pipeline &&
                           bubble.start + k * iteration.period <= decisions[i].start &&
                           decisions[i].end <= bubble.end + k * iteration.period - model.guard);
        EXPECT_TRUE(inside) << "instance " << instance << ", " << to_string(policy);
      }
    }
  }
}

// Bubbles of 300 ms; 200 and 149 wait. Best fit takes 149 twice, again and again; when two bubbles
// were filled so, the 200 that was passed over goes first.
TEST(Backlog, PatienceEnds) {
  const Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  const IterationBubbles iteration = find_bubbles(gpipe_rows(), 2);
  const std::vector<Request> file = prompts({200, 149, 149, 149, 149, 149, 149, 149, 149, 149});
  const auto first_of = [&](std::int64_t patience) {
    std::int64_t before = 0;
    for (const Decision& decision :
         place_backlog(iteration, served_models(scenario, 1), file, PlacementPolicy::best_fit,
                       {.waiting = 4, .iterations = 10, .patience = patience})) {
      if (decision.request == 0) return before;
      ++before;
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(first_of(0), 0);
  EXPECT_EQ(first_of(2), 4);
  // Without an end to it: until three of the four that wait are as long as it, after two rounds.
  EXPECT_EQ(first_of(1000), 18);
}

TEST(Outcomes, AreSharesOfAllTime) {
  const Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  const IterationBubbles iteration = find_bubbles(gpipe_rows(), 2);
  const auto served = served_models(scenario, 1);
  Controller controller{iteration, served, PlacementPolicy::earliest};
  const auto decisions =
      place_open_loop(controller, {{0, 200ms, 100}, {1, 250ms, 100}, {2, 260ms, 400}});
  const Outcome outcome = summarize_decisions(iteration, served, decisions, std::nullopt);
  EXPECT_EQ(outcome.iterations, 1);
  EXPECT_DOUBLE_EQ(outcome.utilisation.training, 1200.0 / 1800);
  EXPECT_DOUBLE_EQ(outcome.utilisation.total, 1400.0 / 1800);
  EXPECT_FALSE(outcome.utilisation.useful.has_value());
  EXPECT_EQ(outcome.done, 2);
  EXPECT_EQ(outcome.refused[static_cast<std::size_t>(RefusalReason::too_long)], 1);
  EXPECT_EQ(outcome.tokens_served, 200);
  EXPECT_EQ(outcome.ttft->max, 150ms);
  EXPECT_DOUBLE_EQ(outcome.parts.wait, 25e6);
}

}  // namespace
}  // namespace longhaul::prefill
