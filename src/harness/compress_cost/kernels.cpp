#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/statistics/sample.hpp"
#include "compress/optimizer/sparse_optimizer.hpp"
#include "compress/select/sparsifier.hpp"
#include "compress/wire/wire.hpp"
#include "harness/compress_cost/compress_cost.hpp"

namespace longhaul::harness {
namespace {

using compress::LazyUpdate;
using compress::Method;
using compress::OptimizerRule;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Adds up the bits of all numbers but the last few, so that the compiler leaves no read out. Asks
/// for lines 2 KiB ahead: without that it takes 1.6 times as long, and would be a weak measure of
/// others.
std::uint64_t read_all(std::span<const float> numbers) {
  constexpr std::size_t kFloats = 32, kWords = kFloats / 2, kAhead = 512, kLine = 16;
  std::uint64_t sums[kWords] = {};
  for (std::size_t i = 0; i + kFloats <= numbers.size(); i += kFloats) {
    __builtin_prefetch(numbers.data() + i + kAhead);
    __builtin_prefetch(numbers.data() + i + kAhead + kLine);
    std::uint64_t words[kWords];
    std::memcpy(words, numbers.data() + i, sizeof words);
    for (std::size_t j = 0; j < kWords; ++j) sums[j] += words[j];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) all ^= sum;
  return all;
}

/// What kernels work on: two vectors and a place for results that no one looks at.
class KernelRun {
public:
  explicit KernelRun(const CompressCostOptions& options)
      : options_{options},
        gradient_{options.count},
        second_{options.count},
        bytes_{4.0 * static_cast<double>(options.count)} {}

  std::vector<KernelCost> all() {
    time("read", bytes_, [&] { sink_ = sink_ + read_all(gradient_.all()); });
    time("memcpy", 2 * bytes_, [&] {
      std::memcpy(second_.all().data(), gradient_.all().data(), gradient_.all().size_bytes());
    });
    sparsifiers();
    wire();
    optimizers();
    return std::move(costs_);
  }

private:
  [[nodiscard]] compress::Settings settings(Method method, int block) const {
    return {
        .method = method, .keep = compress::parse_keep("--keep", options_.keep), .block = block};
  }

  /// Before each repetition `prepare` draws what is worked on, and the gradient is filled anew,
  /// which pushes everything else out of the caches.
  void time(const std::string& name, double bytes, const std::function<void()>& work,
            const std::function<void()>& prepare = {}) {
    KernelCost cost{name, {}, bytes, 0, {}, 0, 0};
    for (int i = 0; i < options_.repetitions; ++i) {
      if (prepare) {
        prepare();
        std::vector<std::uint32_t>& first = cost.first_blocks.emplace_back();
        for (const compress::SparseSet& set : sets_) first.push_back(set.blocks.front());
      }
      gradient_.fill(options_.seed + 1000 * static_cast<std::uint64_t>(++fills_));
      cost.seconds.push_back(seconds_of(work));
    }
    cost.kept = kept_;
    kept_ = 0;
    costs_.push_back(std::move(cost));
  }

  void sparsifiers() {
    for (const int block : {16, 1}) {
      const std::string of = block == 1 ? " of single numbers" : " of blocks of 16";
      compress::Sparsifier in_place{settings(Method::threshold, block), options_.count};
      gradient_.fill(options_.seed + 1);
      static_cast<void>(in_place.take(gradient_.all()));  // its first threshold, of another vector
      time("threshold" + of, bytes_, [&] { note(in_place.take(gradient_.all())); });
      compress::Sparsifier exact{settings(Method::block, block), options_.count};
      time((block == 1 ? "topk" : "block") + of, bytes_,
           [&] { note(exact.take(gradient_.all())); });
    }
    compress::Sparsifier apart{settings(Method::threshold, 16), options_.count};
    second_.clear();
    static_cast<void>(apart.take(gradient_.all(), second_.all()));
    time("threshold of blocks of 16, residual apart", 3 * bytes_,
         [&] { note(apart.take(gradient_.all(), second_.all())); });
  }

  void note(compress::SparseSet set) {
    kept_ = static_cast<std::int64_t>(set.values.size());
    set_ = std::move(set);
  }

  void draw_sets(int block, std::size_t count) {
    sets_.clear();
    compress::Settings drawn = settings(Method::randomk, block);
    drawn.seed = options_.seed + static_cast<std::uint64_t>(++fills_);
    compress::Sparsifier sparsifier{drawn, options_.count};
    for (std::size_t i = 0; i < count; ++i)
      sets_.push_back(sparsifier.take_without_feedback(gradient_.all()));
  }

  /// Of the sets drawn.
  [[nodiscard]] std::int64_t numbers_drawn() const {
    std::int64_t numbers = 0;
    for (const compress::SparseSet& set : sets_) numbers += std::ssize(set.values);
    return numbers;
  }

  void wire() {
    draw_sets(16, 1);
    const double kept = 4.0 * static_cast<double>(numbers_drawn());
    std::vector<std::byte> payload;
    for (const auto values : {compress::ValueFormat::f32, compress::ValueFormat::bf16}) {
      const std::string as = std::string{" as gaps and "} + to_string(values);
      const auto encode = [&] {
        payload = compress::encode(sets_[0], compress::IndexFormat::gaps, values);
        kept_ = numbers_drawn();
      };
      time("encode" + as, 2 * kept, encode, [&] { draw_sets(16, 1); });
      const auto decode = [&] { note(compress::decode(payload, {.source = "bench_compress"})); };
      const auto prepare = [&] {
        draw_sets(16, 1);
        encode();
      };
      time("decode" + as, 2 * kept, decode, prepare);
    }
    const auto merge = [&] {
      note(compress::merge(sets_));
      kept_ = numbers_drawn();
    };
    time("merge of 8 sets", 9 * kept, merge, [&] { draw_sets(16, 8); });
  }

  /// What a sparse step cannot do without: a line of each of two vectors, here and there.
  void scattered_read() {
    const auto read = [&] {
      constexpr std::size_t kAhead = 24;
      const std::vector<std::uint32_t>& blocks = sets_[0].blocks;
      const float* const both[] = {gradient_.all().data(), second_.all().data()};
      float sum = 0;
      for (std::size_t b = 0; b < blocks.size(); ++b)
        for (const float* const numbers : both) {
          __builtin_prefetch(numbers +
                             std::size_t{16} * blocks[std::min(b + kAhead, blocks.size() - 1)]);
          sum += numbers[std::size_t{16} * blocks[b]];
        }
      sink_ = sink_ + (sum > 0 ? 1 : 0);
      kept_ = numbers_drawn();
    };
    draw_sets(16, 1);
    time("read of the same blocks of two vectors", 8 * static_cast<double>(numbers_drawn()), read,
         [&] { draw_sets(16, 1); });
  }

  void optimizers() {
    scattered_read();
    for (const OptimizerRule rule : {OptimizerRule::momentum, OptimizerRule::adamw}) {
      sparse_step(rule, LazyUpdate::skip, 16);
      sparse_step(rule, LazyUpdate::exact, 16);
      late_step(rule);
      sparse_step(rule, LazyUpdate::skip, 1);
      dense_step(rule);
    }
  }

  /// A set drawn anew for each repetition; steps before the first one give blocks a past.
  void sparse_step(OptimizerRule rule, LazyUpdate lazy, int block) {
    const compress::OptimizerSettings how{.rule = rule, .lazy = lazy};
    compress::SparseOptimizer optimizer{how, options_.count, block};
    const auto step = [&] {
      optimizer.step(second_.all(), sets_[0], 0.01F);
      kept_ = numbers_drawn();
    };
    constexpr int kBefore = 4;
    for (int i = 0; i < kBefore; ++i) {
      draw_sets(block, 1);
      step();
    }
    const double arrays = rule == OptimizerRule::adamw ? 7 : 5;
    const double touched = 4.0 * static_cast<double>(numbers_drawn());
    time(fmt::format("{} {}{}", to_string(rule), to_string(lazy),
                     block == 1 ? " of single numbers" : ""),
         arrays * touched, step, [&] { draw_sets(block, 1); });
  }

  /// After 500 steps, of which every block missed the last one to a hundred.
  void late_step(OptimizerRule rule) {
    constexpr std::uint32_t kSteps = 500, kMissed = 100;
    const compress::OptimizerSettings how{.rule = rule, .lazy = LazyUpdate::exact};
    compress::OptimizerState state = compress::fresh_state(how, options_.count, 16);
    std::ranges::copy(gradient_.all(), state.first.begin());
    for (std::size_t i = 0; i < state.second.size(); ++i)
      state.second[i] = state.first[i] * state.first[i];
    for (std::size_t b = 0; b < state.last_step.size(); ++b)
      state.last_step[b] = kSteps - 1 - static_cast<std::uint32_t>(b * 7 % kMissed);
    compress::SparseOptimizer optimizer{how, options_.count, 16};
    optimizer.restore(std::move(state), kSteps, 0.01F);
    const auto step = [&] {
      optimizer.step(second_.all(), sets_[0], 0.01F);
      kept_ = numbers_drawn();
    };
    const double arrays = rule == OptimizerRule::adamw ? 7 : 5;
    time(fmt::format("{} exact after {} steps", to_string(rule), kSteps),
         4 * arrays * static_cast<double>(numbers_drawn()), step, [&] { draw_sets(16, 1); });
  }

  void dense_step(OptimizerRule rule) {
    const compress::OptimizerSettings how{.rule = rule};
    compress::OptimizerState state = compress::fresh_state(how, options_.count, 16);
    std::int64_t step = 0;
    time(fmt::format("{} dense", to_string(rule)), (rule == OptimizerRule::adamw ? 7 : 5) * bytes_,
         [&] {
           kept_ = options_.count;
           compress::dense_step(how, ++step, 0.01F, second_.all(), gradient_.all(), state);
         });
  }

  const CompressCostOptions& options_;
  LargeNumbers gradient_, second_;
  double bytes_;
  std::vector<KernelCost> costs_;
  std::vector<compress::SparseSet> sets_;  ///< drawn for a repetition
  compress::SparseSet set_;
  std::int64_t kept_ = 0;
  int fills_ = 0;
  volatile std::uint64_t sink_ = 0;
};

}  // namespace

std::vector<KernelCost> measure_kernels(const CompressCostOptions& options) {
  std::vector<KernelCost> costs = KernelRun{options}.all();
  const double read = summarize(costs[0].seconds).median;
  const double copy = summarize(costs[1].seconds).median;
  for (KernelCost& cost : costs) {
    const double median = summarize(cost.seconds).median;
    cost.over_read = median / read;
    cost.over_copy = median / copy;
  }
  return costs;
}

}  // namespace longhaul::harness
