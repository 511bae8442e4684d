#include "harness/collectives/timed_runs.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/ranges.h>

#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "comm/mpi/own_collectives.hpp"
#include "harness/collectives/shared_runner.hpp"
#include "harness/collectives/step_runner.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "nn/memory.hpp"

namespace longhaul::harness {
namespace {

constexpr Bytes kMostMemory{2LL << 30};
/// No call of MPI's own takes so long where all members are alive.
constexpr Duration kLongestCall = std::chrono::minutes{10};

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
      ranks_.world().barrier();
      if (own_) own_->barrier([&](Duration waited) { ranks_.watchdog().check_wait(waited); });
      std::optional<comm::BlockingCall> guard;  // MPI's own call waits for ever
      if (own_) guard.emplace("the members of a collective", kLongestCall);
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

/// A member's memories for one call, in the host's memory.
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
  /// As MPI takes it.
  [[nodiscard]] comm::Exchange exchange() {
    comm::Exchange exchange{NumberType::f32, {}, std::as_writable_bytes(std::span{result_})};
    if (use_ == BufferUse::in_place) return exchange;
    static const float none = 0;  // a member that brings nothing is still out of place
    exchange.mine = mine_.empty() ? std::as_bytes(std::span{&none, std::size_t{0}})
                                  : std::as_bytes(std::span{mine_});
    return exchange;
  }

  [[nodiscard]] std::span<const float> mine() const { return mine_; }
  [[nodiscard]] std::span<float> result() { return result_; }
  [[nodiscard]] std::size_t brought() const { return brought_; }
  [[nodiscard]] std::size_t got() const { return got_; }
  /// A member's place among the shares of all.
  [[nodiscard]] std::size_t own_place() const { return share_ * to_size(self_); }

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

/// The same on a member's GPU, as NCCL takes it: in place a share lies at the member's own place of
/// what all bring or get.
class DeviceBuffers {
public:
  DeviceBuffers(OwnBuffers& host, BufferUse use, std::unique_ptr<nn::TensorOps> math)
      : host_{host}, math_{std::move(math)} {
    const std::size_t all = host.result().size();
    const auto take = [&](std::size_t count, const char* what) {
      return memory_.take(std::max<std::size_t>(1, count), NumberType::f32, what);
    };
    both_ = take(all, "the result of a collective");
    if (use == BufferUse::out_of_place) {
      apart_ = take(host.mine().size(), "the input of a collective");
      mine_ = apart_.view().part(0, host.mine().size());
      result_ = both_.view().part(0, all);
      return;
    }
    const auto at_own_place = [&](std::size_t count, std::size_t other) {
      return both_.view().part(count > 0 && count < other ? host.own_place() : 0, count);
    };
    mine_ = at_own_place(host.brought(), host.got());
    result_ = at_own_place(host.got(), host.brought());
  }

  void fill(int iteration) {
    host_.fill(iteration);
    if (apart_ && mine_.count > 0) math_->copy_in(host_.mine(), mine_);
    if (!apart_ && !host_.result().empty())
      math_->copy_in(host_.result(), both_.view().part(0, host_.result().size()));
    math_->finish();
  }
  [[nodiscard]] comm::Exchange exchange() const {
    return {NumberType::f32, {mine_.data, mine_.bytes()}, {result_.data, result_.bytes()}};
  }
  [[nodiscard]] std::int64_t wrong() {
    if (result_.count > 0) math_->copy_out(result_, host_.result().first(result_.count));
    return host_.wrong();
  }

private:
  OwnBuffers& host_;
  std::unique_ptr<nn::TensorOps> math_;
  nn::DeviceMemory memory_{*math_, 0};
  nn::DeviceMemory::Buffer both_, apart_;
  nn::ArrayView mine_, result_;
};

std::string ranks_text(const std::vector<Rank>& members) {
  std::vector<int> numbers;
  for (const Rank member : members) numbers.push_back(static_cast<int>(member));
  return fmt::format("{}", fmt::join(numbers, ", "));
}

/// One call over the transport of payloads, until it is over on this member's GPU. An error ends
/// the run here: memory that a kernel of NCCL has is not given back before that ends, and it waits
/// for its peers.
void call_nccl(const plan::Collective& collective, engine::Ranks& ranks,
               const comm::Exchange& exchange) {
  try {
    const TimePoint begin = now();
    const comm::RequestId request =
        ranks.transport().collective(collective.kind, collective.members, exchange);
    std::vector<comm::Completion> done;
    while (std::ranges::find(done, request, &comm::Completion::request) == done.end()) {
      ranks.transport().advance(done);
      ranks.watchdog().check_wait(now() - begin);
    }
  } catch (const Error& error) {
    ranks.watchdog().fail(fmt::format("NCCL's {} of {} among ranks {} failed: {}",
                                      to_text(collective.kind), to_text(collective.size),
                                      ranks_text(collective.members), error.what()));
  }
}

/// Has NCCL one call for it? The others are sends and receives, which are never in place.
bool is_one_call_of_nccl(CollectiveKind kind) {
  return kind != CollectiveKind::gather && kind != CollectiveKind::scatter &&
         kind != CollectiveKind::all_to_all;
}

TimedRuns time_nccl(const plan::Collective& collective, engine::Ranks& ranks, Timing& timing,
                    std::optional<OwnBuffers>& host, const Repetitions& repetitions,
                    BufferUse use) {
  std::optional<DeviceBuffers> buffers;
  if (host) {
    buffers.emplace(*host, use, make_tensor_ops(DeviceKind::cuda, ranks));
    ranks.transport().prepare_group(collective.members);
  }
  return timing.time(
      repetitions, [&](int iteration) { buffers->fill(iteration); },
      [&] { call_nccl(collective, ranks, buffers->exchange()); }, [&] { return buffers->wrong(); });
}

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
  const WhileWaiting waiting = [&](Duration waited) { ranks.watchdog().check_wait(waited); };
  if (calls == CollectiveCalls::shared) {
    require_one_host(collective, ranks);
    std::optional<SharedRunner> runner;
    if (timing.member() >= 0)
      runner.emplace(collective, steps, timing.member(), use, ranks.world());
    return timing.time(
        repetitions, [&](int iteration) { runner->begin_iteration(iteration); },
        [&] { runner->run(waiting); }, [&] { return runner->wrong_items(); });
  }
  std::optional<StepRunner> runner;
  if (timing.member() >= 0) runner.emplace(collective, steps, timing.member(), use);
  return timing.time(
      repetitions, [&](int iteration) { runner->begin_iteration(iteration); },
      [&] { runner->run(ranks.host_transport(), waiting); }, [&] { return runner->wrong_items(); });
}

std::optional<TimedRuns> time_own(const plan::Collective& asked, engine::Ranks& ranks,
                                  const Repetitions& repetitions, BufferUse use, OwnCalls by) {
  plan::Collective collective = asked;
  collective.pieces = 1;
  collective.algorithm = plan::CollectiveAlgorithm::ring;
  collective.mesh = {};
  const bool is_small = collective.size.count() < 4 * std::ssize(collective.members);
  const bool has_call =
      by == OwnCalls::mpi ? !ranks.world().is_of_threads()
                          : use == BufferUse::out_of_place || is_one_call_of_nccl(collective.kind);
  if (!has_call || is_small || collective.size > kMostMemory / 2) return std::nullopt;
  collective.size = size_in_numbers(collective);
  const plan::CollectiveSteps steps = plan::steps_of(collective);
  Timing timing{collective, ranks};
  std::optional<OwnBuffers> buffers;
  if (timing.member() >= 0) buffers.emplace(collective, steps, timing.member(), use);
  if (by == OwnCalls::nccl) return time_nccl(collective, ranks, timing, buffers, repetitions, use);
  return timing.time(
      repetitions, [&](int iteration) { buffers->fill(iteration); },
      [&] { timing.own().run(collective.kind, buffers->exchange()); },
      [&] { return buffers->wrong(); });
}

}  // namespace longhaul::harness
