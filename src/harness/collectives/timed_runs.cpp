#include "harness/collectives/timed_runs.hpp"

#include <algorithm>
#include <numeric>

#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "comm/mpi/own_collectives.hpp"
#include "harness/collectives/shared_runner.hpp"
#include "harness/collectives/step_runner.hpp"

namespace longhaul::harness {
namespace {

constexpr Bytes kMostMemory{2LL << 30};

/// This rank's part in the measurement of one collective.
class Timing {
public:
  Timing(const plan::Collective& collective, engine::Ranks& ranks) : ranks_{ranks} {
    const auto found = std::ranges::find(collective.members, ranks.self());
    if (found == collective.members.end()) return;
    member_ = static_cast<int>(found - collective.members.begin());
    if (ranks.world().is_of_threads()) return;
    own_.emplace(ranks.world(), collective.members);
    gives_way_.emplace();
  }
  [[nodiscard]] int member() const { return member_; }  ///< -1: none
  [[nodiscard]] const comm::OwnCollectives& own() const { return *own_; }

  /// `prepare(iteration)`, `run()` and `wrong()` are called on members alone.
  template <typename Prepare, typename Run, typename Wrong>
  TimedRuns time(const Repetitions& repetitions, Prepare prepare, Run run, Wrong wrong) {
    TimedRuns runs;
    for (int iteration = -repetitions.warmup; iteration < repetitions.iterations; ++iteration) {
      if (member_ >= 0) prepare(iteration);
      if (ranks_.world().is_of_threads()) ranks_.world().barrier();
      if (own_) own_->barrier();
      Duration mine{};
      if (member_ >= 0) {
        const TimePoint begin = now();
        run();
        mine = now() - begin;
        runs.wrong += wrong();
      }
      const std::int64_t longest = ranks_.world().maximum(mine.count());
      if (iteration >= 0 && ranks_.is_first())
        runs.durations_ns.push_back(static_cast<double>(longest));
    }
    runs.wrong = ranks_.world().sum(runs.wrong);
    if (ranks_.is_first()) runs.summary = summarize(runs.durations_ns);
    return runs;
  }

private:
  engine::Ranks& ranks_;
  int member_ = -1;
  std::optional<comm::OwnCollectives> own_;
  std::optional<comm::GivesWay> gives_way_;
};

/// A member's memories for a call of MPI.
class OwnBuffers {
public:
  OwnBuffers(const plan::Collective& collective, const plan::CollectiveSteps& steps, int self,
             BufferUse use)
      : steps_{steps},
        self_{self},
        use_{use},
        share_{to_size(collective.size.count()) / sizeof(float) / to_size(steps.members)} {
    const CollectiveFacts& facts = facts_of(steps.kind);
    const std::size_t all = share_ * to_size(steps.members);
    brought_ = facts.brought(all, to_size(steps.members), to_size(self));
    got_ = facts.got(all, to_size(steps.members), to_size(self));
    if (use == BufferUse::out_of_place) mine_.resize(brought_);
    result_.resize(use == BufferUse::out_of_place ? got_ : std::max(brought_, got_));
  }

  void fill(int iteration) {
    iteration_ = iteration;
    const StepNumbers numbers{steps_, iteration};
    std::vector<float>& to = use_ == BufferUse::out_of_place ? mine_ : result_;
    for (std::uint32_t item = 0; item < steps_.items(); ++item) {
      if (!plan::brings(steps_, self_, item)) continue;
      numbers.fill({to.data() + brought_at(item), share_}, self_, item);
    }
  }
  [[nodiscard]] std::int64_t wrong() const {
    const StepNumbers numbers{steps_, iteration_};
    std::int64_t wrong = 0;
    for (std::uint32_t item = 0; item < steps_.items(); ++item)
      if (plan::gets(steps_, self_, item) &&
          !numbers.are_right({result_.data() + got_at(item), share_}, item))
        ++wrong;
    return wrong;
  }
  [[nodiscard]] comm::Exchange exchange() {
    comm::Exchange exchange{NumberType::f32, {}, std::as_writable_bytes(std::span{result_})};
    if (use_ == BufferUse::in_place) return exchange;
    static const float none = 0;  // a member that brings nothing is still out of place
    exchange.mine = mine_.empty() ? std::as_bytes(std::span{&none, std::size_t{0}})
                                  : std::as_bytes(std::span{mine_});
    return exchange;
  }

private:
  /// Where the numbers of an item lie that the member brings: its own share alone, or at its place
  /// of all.
  [[nodiscard]] std::size_t brought_at(std::uint32_t item) const {
    const CollectiveFacts& facts = facts_of(steps_.kind);
    if (facts.merging == Merging::transposed)
      return share_ * (item % static_cast<std::uint32_t>(steps_.members));
    const bool among_all = use_ == BufferUse::in_place && got_ > brought_;
    return facts.brings == Portion::share && !among_all ? 0 : share_ * item;
  }
  [[nodiscard]] std::size_t got_at(std::uint32_t item) const {
    const CollectiveFacts& facts = facts_of(steps_.kind);
    if (facts.merging == Merging::transposed)
      return share_ * (item / static_cast<std::uint32_t>(steps_.members));
    return facts.gets == Portion::share ? 0 : share_ * item;
  }

  const plan::CollectiveSteps& steps_;
  int self_;
  BufferUse use_;
  std::size_t share_, brought_ = 0, got_ = 0;
  int iteration_ = 0;
  std::vector<float> mine_, result_;
};

}  // namespace

void require_runnable(const plan::Collective& collective) {
  (void)size_in_numbers(collective);
  const Bytes memory = StepRunner::memory_of(collective, BufferUse::out_of_place);
  if (memory > kMostMemory)
    fail("--bytes {}: a rank would hold {} ({} is the limit). Use less.", to_text(collective.size),
         to_text(memory), to_text(kMostMemory));
}

namespace {

void require_one_host(const plan::Collective& collective, const engine::Ranks& ranks) {
  const comm::HostRanks& hosts = ranks.host_ranks();
  for (const Rank member : collective.members)
    if (hosts.host_of(member) != hosts.host_of(collective.members.front()))
      throw Error{
          fmt::format("--collectives shared: ranks {} and {} are on two hosts, and share no "
                      "memory. Use messages, or a --group of one host.",
                      index(collective.members.front()), index(member)),
          ExitCode::bad_input};
}

}  // namespace

TimedRuns time_steps(const plan::Collective& collective, engine::Ranks& ranks,
                     const Repetitions& repetitions, BufferUse use, CollectiveCalls calls) {
  const plan::CollectiveSteps steps = plan::steps_of(collective);
  Timing timing{collective, ranks};
  if (calls == CollectiveCalls::shared) {
    require_one_host(collective, ranks);
    std::optional<SharedRunner> runner;
    if (timing.member() >= 0)
      runner.emplace(collective, steps, timing.member(), use, ranks.world());
    return timing.time(
        repetitions, [&](int iteration) { runner->begin_iteration(iteration); },
        [&] { runner->run(); }, [&] { return runner->wrong_items(); });
  }
  std::optional<StepRunner> runner;
  if (timing.member() >= 0) runner.emplace(collective, steps, timing.member(), use);
  return timing.time(
      repetitions, [&](int iteration) { runner->begin_iteration(iteration); },
      [&] { runner->run(ranks.host_transport()); }, [&] { return runner->wrong_items(); });
}

std::optional<TimedRuns> time_own(const plan::Collective& asked, engine::Ranks& ranks,
                                  const Repetitions& repetitions, BufferUse use) {
  plan::Collective collective = asked;
  collective.pieces = 1;
  collective.algorithm = plan::CollectiveAlgorithm::ring;
  collective.mesh = {};
  const bool is_small = collective.size.count() < 4 * std::ssize(collective.members);
  if (ranks.world().is_of_threads() || is_small || collective.size > kMostMemory / 2)
    return std::nullopt;
  collective.size = size_in_numbers(collective);
  const plan::CollectiveSteps steps = plan::steps_of(collective);
  Timing timing{collective, ranks};
  std::optional<OwnBuffers> buffers;
  if (timing.member() >= 0) buffers.emplace(collective, steps, timing.member(), use);
  return timing.time(
      repetitions, [&](int iteration) { buffers->fill(iteration); },
      [&] { timing.own().run(collective.kind, buffers->exchange()); },
      [&] { return buffers->wrong(); });
}

}  // namespace longhaul::harness
