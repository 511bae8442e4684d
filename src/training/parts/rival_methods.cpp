#include "training/parts/rival_methods.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/kept_share.hpp"
#include "compress/rivals/bit_payloads.hpp"
#include "compress/rivals/decoupled_momentum.hpp"
#include "compress/rivals/momentum_correction.hpp"
#include "plan/lowering/part_lowering.hpp"
#include "scenario/training/read_train.hpp"
#include "training/model_layout.hpp"
#include "training/parts/local_methods.hpp"
#include "training/parts/low_rank_method.hpp"
#include "training/parts/one_bit_method.hpp"
#include "training/parts/set_envelope.hpp"

namespace longhaul::training {
namespace {

/// What rivals that send sparse sets of single numbers have in common.
class SparseRival : public PartMethod {
public:
  SparseRival(const PartPlace& place, const StepSettings& step, std::int64_t places,
              std::int64_t most_kept, compress::IndexFormat index)
      : numbers_{place.numbers},
        accounts_{place.accounts},
        rate_{step.learning_rate},
        places_{places},
        most_kept_{static_cast<std::size_t>(most_kept)},
        index_{index} {}

  std::vector<std::byte> own_set(int /*iteration*/, std::span<const float> gradient) override {
    compress::require_finite(gradient);
    return compress::encode(take(gradient), index_, compress::ValueFormat::f32);
  }
  std::vector<std::byte> site_set(int /*iteration*/, std::span<const SetPayload> sets) override {
    fail("{}: a site's choice is not defined. Use exchange = \"direct\".", sets.front().source);
  }
  void merge(int /*iteration*/, std::span<const SetPayload> sets) override {
    std::vector<compress::SparseSet> decoded;
    decoded.reserve(sets.size());
    for (const SetPayload& set : sets)
      decoded.push_back(compress::decode(set.payload, {set.source, places_, 1}));
    sum_ = compress::merge(decoded);
    if (accounts_) account_sum(merged_);
  }
  void finish() override {}
  void save(StateWriter& to) const override {
    to.put_all<double>(seen_);
    to.put_all<double>(merged_);
  }
  void load(StateReader& from) override {
    seen_ = from.take_all<double>();
    merged_ = from.take_all<double>();
  }
  /// A place takes 5 bytes at most.
  std::size_t largest_set() const override {
    const auto stretches = static_cast<std::size_t>(places_ / compress::kStretch) + 1;
    return compress::kPayloadHeader + 4 * stretches + 9 * most_kept_;
  }
  std::span<const double> gradients_seen() const override { return seen_; }
  std::span<const double> sums_seen() const override { return merged_; }

protected:
  [[nodiscard]] virtual compress::SparseSet take(std::span<const float> gradient) = 0;
  /// Adds what was merged, in numbers of the part.
  virtual void account_sum(std::vector<double>& merged) const = 0;
  [[nodiscard]] bool accounts() const { return accounts_; }
  /// What had to be sent, without what the method itself forgets.
  [[nodiscard]] std::vector<double>& seen() { return seen_; }
  [[nodiscard]] float rate() const { return rate_; }
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(numbers_); }
  [[nodiscard]] const compress::SparseSet& sum() const { return sum_; }

private:
  std::int64_t numbers_;
  bool accounts_;
  float rate_;
  std::int64_t places_;
  std::size_t most_kept_;
  compress::IndexFormat index_;
  compress::SparseSet sum_;
  std::vector<double> seen_, merged_;
};

/// Momentum is gathered before numbers wait; a step is the rate times the sum.
class DgcMethod final : public SparseRival {
public:
  DgcMethod(const RivalSettings& settings, const PartPlace& place, const StepSettings& step)
      : SparseRival{place, step, place.numbers,
                    blocks_to_keep(place.numbers, most_kept(settings), 1), settings.index},
        dgc_{{settings.keep, settings.momentum, settings.warm_up}, place.numbers},
        momentum_{static_cast<double>(settings.momentum)} {}

  void step(int /*iteration*/, std::span<float> weights) override {
    compress::add_to(weights, sum(), -rate());
  }
  void save(StateWriter& to) const override {
    SparseRival::save(to);
    to.put_all<double>(gathered_);
    const compress::Dgc::State& state = dgc_.state();
    to.put(state.steps);
    to.put_all<float>(state.momenta);
    to.put_all<float>(state.waiting);
  }
  void load(StateReader& from) override {
    SparseRival::load(from);
    gathered_ = from.take_all<double>();
    compress::Dgc::State state;
    state.steps = from.take<std::int64_t>();
    state.momenta = from.take_all<float>();
    state.waiting = from.take_all<float>();
    dgc_.restore(std::move(state));
  }
  std::span<const float> residual() const override { return dgc_.waiting(); }

private:
  static double most_kept(const RivalSettings& settings) {
    constexpr double kFirstStage = 0.25;
    return settings.warm_up > 0 ? std::max(kFirstStage, settings.keep) : settings.keep;
  }
  /// Momentum is what waits: it is gathered once more in double precision, and loses what is sent.
  [[nodiscard]] compress::SparseSet take(std::span<const float> gradient) override {
    const bool masks = dgc_.keep() < 1;
    compress::SparseSet sent = dgc_.take(gradient);
    if (!accounts()) return sent;
    seen().resize(count());
    gathered_.resize(count());
    for (std::size_t i = 0; i < count(); ++i) {
      gathered_[i] = momentum_ * gathered_[i] + static_cast<double>(gradient[i]);
      seen()[i] += gathered_[i];
    }
    for (std::size_t i = 0; masks && i < sent.blocks.size(); ++i) gathered_[sent.blocks[i]] = 0;
    return sent;
  }
  void account_sum(std::vector<double>& merged) const override {
    std::vector<float> numbers(count());
    compress::add_to(numbers, sum());
    add_up(merged, numbers);
  }
  compress::Dgc dgc_;
  double momentum_;
  std::vector<double> gathered_;
};

/// The largest coefficients of the momentum's cosine transform; a step is the sign of their sum.
class DemoMethod final : public SparseRival {
public:
  DemoMethod(const RivalSettings& settings, const PartPlace& place, const StepSettings& step,
             const std::vector<compress::TensorChunk>& chunks)
      : DemoMethod{settings, place, step, compress::kept_of_chunks(chunks, settings.keep),
                   compress::DecoupledMomentum{settings.keep, settings.decay, chunks,
                                               static_cast<std::size_t>(place.numbers)}} {}

  void step(int /*iteration*/, std::span<float> weights) override {
    compress::demo_step(weights, momentum_.numbers_of(sum()), rate());
  }
  void save(StateWriter& to) const override {
    SparseRival::save(to);
    to.put_all<float>(momentum_.momenta());
  }
  void load(StateReader& from) override {
    SparseRival::load(from);
    momentum_.restore(from.take_all<float>());
  }
  std::span<const float> residual() const override { return momentum_.momenta(); }

private:
  DemoMethod(const RivalSettings& settings, const PartPlace& place, const StepSettings& step,
             std::int64_t kept, compress::DecoupledMomentum momentum)
      : SparseRival{place, step, momentum.coefficients(), kept, compress::IndexFormat::gaps},
        momentum_{std::move(momentum)},
        decay_{settings.decay} {}
  /// What the momentum's decay forgets was not to be sent.
  [[nodiscard]] compress::SparseSet take(std::span<const float> gradient) override {
    if (accounts()) add_decayed(seen(), gradient, momentum_.momenta(), decay_);
    return momentum_.take(gradient);
  }
  void account_sum(std::vector<double>& merged) const override {
    add_up(merged, momentum_.numbers_of(sum()));
  }
  compress::DecoupledMomentum momentum_;
  float decay_;
};

double bits_of_place(compress::IndexFormat index, double keep) {
  switch (index) {
    case compress::IndexFormat::coo32: return 32;
    case compress::IndexFormat::coo16: return 16;
    case compress::IndexFormat::gaps: break;
  }
  return 8 * compress::expected_gap_bytes(keep);
}

/// Bytes of what one replica sends of a part, by round.
std::vector<std::size_t> payloads_of(const RivalSettings& settings,
                                     const nn::ParameterPlaces& tensors) {
  const auto dense = [](std::size_t numbers) { return compress::kPayloadHeader + 4 * numbers; };
  if (settings.rival == Rival::powersgd) {
    check_rank(settings.rank, tensors.places);
    const auto [first, second] = low_rank_numbers(settings.rank, tensors.places);
    return {dense(first), dense(second)};
  }
  if (settings.bits == kFourBits) return {compress::four_bit_bytes(tensors.numbers)};
  return {dense(tensors.numbers)};
}

}  // namespace

std::unique_ptr<PartMethod> make_rival(const RivalSettings& settings, const PartPlace& place,
                                       const StepSettings& step) {
  switch (settings.rival) {
    case Rival::dgc: return std::make_unique<DgcMethod>(settings, place, step);
    case Rival::demo:
      return std::make_unique<DemoMethod>(
          settings, place, step, chunks_of(place, compress::kDctChunk, compress::kDctChunk));
    case Rival::onebit: return make_one_bit(settings, place, step);
    case Rival::powersgd: return make_power_sgd(settings, place, step);
    case Rival::localsgd:
    case Rival::diloco:
    case Rival::streaming_diloco:
    case Rival::sparseloco: return make_local(settings, place);
  }
  fail("there is no such rival ({}).", static_cast<int>(settings.rival));
}

std::vector<compress::TensorChunk> chunks_of(const PartPlace& place, std::size_t across,
                                             std::size_t along) {
  std::vector<compress::TensorShape> shapes;
  for (const nn::ParameterPlace& tensor : place.tensors)
    shapes.push_back({tensor.first, tensor.rows, tensor.columns});
  return compress::chunks_of(shapes, static_cast<std::size_t>(place.numbers), across, along);
}

double bits_per_number(const RivalSettings& settings) {
  constexpr double kFloat = 32;
  switch (settings.rival) {
    case Rival::dgc: return settings.keep * (kFloat + bits_of_place(settings.index, settings.keep));
    case Rival::demo:
      return settings.keep * (kFloat + bits_of_place(compress::IndexFormat::gaps, settings.keep));
    case Rival::onebit: return 1;
    case Rival::sparseloco:
      return settings.keep * (2 + bits_of_place(compress::IndexFormat::gaps, settings.keep));
    case Rival::powersgd:
    case Rival::localsgd:
    case Rival::diloco:
    case Rival::streaming_diloco: break;
  }
  return kFloat;
}

plan::PartExchanges exchanges_of_rival(const RivalSettings& settings, const Schedule& schedule,
                                       const Scenario& scenario) {
  plan::PartExchanges exchanges;
  exchanges.fragments = settings.fragments;
  exchanges.overlap = settings.overlap;
  if (!has_exact_sizes(settings.rival)) return exchanges;
  const nn::ModelShape shape = model_shape(scenario);
  const std::vector<nn::LayerRange> layers = layers_of_stages(schedule, scenario);
  std::map<int, std::vector<Bytes>> by_number;
  for (const DeviceId device : schedule.device_ids())
    for (const plan::TrainedPart& part : plan::trained_parts(schedule, ReplicaId{0}, device)) {
      const nn::ParameterPlaces tensors =
          tensors_of_part(shape, layers[at(schedule.stage_of(part.chunk))], part.part, part.parts);
      for (const std::size_t payload : payloads_of(settings, tensors))
        by_number[part.number].push_back(scenario::nominal_size(
            scenario, Bytes{static_cast<std::int64_t>(sizeof(SetEnvelope) + payload)}));
    }
  for (auto& [number, sizes] : by_number) exchanges.sizes.push_back(std::move(sizes));
  return exchanges;
}

std::vector<double> early_bits(const RivalSettings& settings) {
  if (settings.rival == Rival::onebit) return std::vector<double>(to_size(settings.warm_up), 32);
  std::vector<double> bits;
  if (settings.rival != Rival::dgc || settings.warm_up == 0) return bits;
  compress::Dgc dgc{{settings.keep, settings.momentum, settings.warm_up}, 1};
  const std::vector<float> nothing(1);
  RivalSettings now = settings;
  for (; dgc.keep() > settings.keep; (void)dgc.take(nothing)) {
    now.keep = dgc.keep();
    bits.push_back(bits_per_number(now));
  }
  return bits;
}

void resize_sets(Plan& plan, const std::function<double(int part)>& bits) {
  constexpr double kFloat = 32;
  for (const plan::OpPriority& each : plan.extras.priorities) {
    Op& send = plan.ops[index(each.op)];
    if (send.kind != OpKind::send) continue;
    const double share = bits(each.priority - 1) / kFloat;
    Op& recv = plan.ops[send.match];
    send.size = recv.size = Bytes{
        std::max<std::int64_t>(1, std::llround(share * static_cast<double>(send.size.count())))};
    send.duration = Duration{std::llround(share * static_cast<double>(send.duration.count()))};
  }
}

}  // namespace longhaul::training
