#include "harness/prefill/real_stretches.hpp"

#include <atomic>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::harness {
namespace {

/// While rank 0 computes all prompts of a stretch.
constexpr Duration kReferencePatience = std::chrono::hours{2};

}  // namespace

/// Blocks of training, and prompts: each in its own layers.
class RealStretches::Work final : public engine::StreamWork {
public:
  explicit Work(RealStretches& all) : all_{all} {}
  void run(OpId op, int /*iteration*/, int /*version*/) override {
    const bool is_gpu =
        index(all_.ranks_.self()) < to_size(all_.planned_.scenario.training_ranks());
    if (is_gpu && busy_.exchange(true))
      fail("op {} begins while another of its GPU computes (they share it in turn).", index(op));
    const auto training = all_.training_of_.find(op);
    if (training == all_.training_of_.end()) {
      all_.served_.run(op);
    } else {
      all_.session_.work().run(training->second);
      all_.session_.work().ended(training->second);
    }
    busy_ = false;
  }

private:
  std::atomic<bool> busy_ = false;
  RealStretches& all_;
};

/// Messages of training, which are told by the ids of its own plan, and those of prompts.
class RealStretches::Payloads final : public engine::DataPlane {
public:
  explicit Payloads(RealStretches& all) : all_{all} {}
  void begin_iteration(std::uint32_t run, int iteration) override {
    training().begin_iteration(run, iteration);
    run_ = run;
    iteration_ = iteration;
  }
  [[nodiscard]] std::vector<engine::LateVerdict> end_iteration() override {
    return training().end_iteration();
  }
  [[nodiscard]] engine::Payload make(OpId send) override {
    return served(send) ? all_.served_.make(send) : training().make(own(send));
  }
  [[nodiscard]] engine::Payload room(OpId recv) override {
    return served(recv) ? all_.served_.room(recv) : training().room(own(recv));
  }
  [[nodiscard]] engine::Payloads::Verdict check(OpId recv, std::span<const std::byte> payload,
                                                engine::PayloadId& found) override {
    if (!served(recv)) return training().check(own(recv), payload, found);
    const Plan& plan = *all_.plan_;
    found = engine::payload_id(plan, OpId{plan.op(recv).match}, run_, iteration_);
    return all_.served_.check(recv, payload);
  }
  void deliver(OpId recv, engine::Payload payload) override {
    if (served(recv)) return all_.served_.deliver(recv, payload);
    training().deliver(own(recv), std::move(payload));
  }
  void corrupt(OpId send, engine::FaultKind how, engine::Payload& payload) override {
    if (served(send)) return ServedWork::corrupt(payload);
    training().corrupt(own(send), how, payload);
  }
  [[nodiscard]] comm::Exchange exchange(OpId collective) override {
    return training().exchange(own(collective));
  }
  [[nodiscard]] bool exchanged(OpId collective) override {
    return training().exchanged(own(collective));
  }

private:
  [[nodiscard]] bool served(OpId op) const { return !all_.training_of_.contains(op); }
  [[nodiscard]] OpId own(OpId op) const { return all_.training_of_.at(op); }
  [[nodiscard]] engine::DataPlane& training() { return all_.session_.data_plane(); }

  RealStretches& all_;
  std::uint32_t run_ = 0;
  int iteration_ = 0;
};

void check_real_stretches(const PlannedStretches& planned, const PrefillSettings& settings) {
  if (!settings.compute.real) return;
  if (settings.listen)
    fail(
        "--listen: clients say how long a prompt is and not what it says. Leave --compute real "
        "out.");
  if (settings.stretch != 1)
    fail(
        "--stretch {}: real layers step their optimizer after each stretch, so that it is one "
        "iteration. Write --stretch 1.",
        settings.stretch);
  check_real_schedule(planned.scenario, planned.schedule);
  for (const prefill::Served& each : planned.served) (void)served_shape(each.model);
}

RealStretches::RealStretches(engine::Ranks& ranks, const PlannedStretches& planned,
                             const PrefillSettings& settings)
    : ranks_{ranks},
      planned_{planned},
      training_{planned.schedule, planned.training, planned.predicted, {}},
      session_{ranks, planned.scenario, settings.compute},
      served_{planned, ranks.self()},
      work_{std::make_unique<Work>(*this)},
      payloads_{std::make_unique<Payloads>(*this)},
      device_{*work_, ranks.host_ranks(), settings.pace} {
  session_.begin(training_, planned.scenario, settings.engine.fault);
  if (ranks.is_first()) check_.emplace(planned);
}

RealStretches::~RealStretches() = default;

engine::DataPlane& RealStretches::data_plane() { return *payloads_; }

void RealStretches::begin(const FilledStretch* with, const prefill::LivePlan* live) {
  training_of_.clear();
  plan_ = with != nullptr ? &with->filled.plan : &planned_.training;
  for (std::size_t i = 0; i < planned_.training.ops.size(); ++i) {
    const OpId own{static_cast<std::uint32_t>(i)};
    training_of_[with != nullptr ? with->filled.training[i] : own] = own;
  }
  if (with != nullptr && live != nullptr)
    served_.begin_live(*live);
  else if (with != nullptr)
    served_.begin(*with);
  session_.begin_iteration(played_);
}

void RealStretches::end(engine::Checks& checks) { session_.end_iteration(played_++, checks); }

void RealStretches::check_prompts(const FilledStretch& with, const StretchOutcome* outcome) {
  const Duration patience = ranks_.watchdog().patience();
  ranks_.watchdog().set_patience(kReferencePatience);
  const ServedNumbers numbers = served_.gather(ranks_, with);
  if (check_) check_->check(with, *outcome, numbers);
  ranks_.world().barrier();
  ranks_.watchdog().set_patience(patience);
}

RealStretches::Results RealStretches::finish() {
  Results results{session_.finish(), {}};
  const device::StreamDevice::Overruns mine = device_.take_overruns();
  results.ops = ranks_.world().sum(mine.ops);
  results.longer = ranks_.world().sum(mine.longer);
  if (check_) results.served = check_->report();
  return results;
}

}  // namespace longhaul::harness
