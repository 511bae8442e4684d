#include "collective/iteration/iteration_text.hpp"

#include <charconv>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "collective/iteration/iteration_of.hpp"

namespace longhaul::collective {
namespace {

template <typename T>
concept Number = std::is_integral_v<T> || std::is_enum_v<T>;

class NumberWriter {
public:
  explicit NumberWriter(std::string& text) : text_{text} {}
  void number(std::int64_t& value) { text_ += std::to_string(value) + ' '; }

private:
  std::string& text_;
};

class NumberReader {
public:
  explicit NumberReader(const std::string& text)
      : at_{text.data()}, end_{text.data() + text.size()} {}
  void number(std::int64_t& value) {
    const auto [rest, problem] = std::from_chars(at_, end_, value);
    LONGHAUL_ASSERT(problem == std::errc{} && rest != end_, "an iteration ends after {} characters",
                    end_ - at_);
    at_ = rest + 1;  // a blank
  }

private:
  const char *at_, *end_;
};

/// Passes each field of a value to a NumberWriter or from a NumberReader, in the same order. A new
/// field does not compile until it is named here.
template <typename Numbers>
class Fields {
public:
  explicit Fields(Numbers numbers) : numbers_{std::move(numbers)} {}

  template <typename... Values>
  void all(Values&... values) {
    (one(values), ...);
  }

private:
  template <Number T>
  void one(T& value) {
    auto number = static_cast<std::int64_t>(value);
    numbers_.number(number);
    value = static_cast<T>(number);
  }
  template <typename Kind>
  void one(CountedId<Kind>& value) {
    auto count = number(value);
    one(count);
    value = CountedId<Kind>{count};
  }
  void one(Duration& value) {
    std::int64_t count = value.count();
    one(count);
    value = Duration{count};
  }
  void one(Bytes& value) {
    std::int64_t count = value.count();
    one(count);
    value = Bytes{count};
  }
  template <typename T>
  void one(std::optional<T>& value) {
    bool is_there = value.has_value();
    one(is_there);
    if (is_there && !value) value.emplace();
    if (is_there) one(*value);
    if (!is_there) value.reset();
  }
  template <typename T>
  void one(std::vector<T>& values) {
    std::size_t count = values.size();
    one(count);
    values.resize(count);
    for (T& each : values) one(each);
  }
  template <typename Id, typename T>
  void one(IndexedVector<Id, T>& values) {
    std::size_t count = values.size();
    one(count);
    while (values.size() < count) values.push_back(T{});
    for (T& each : values) one(each);
  }
  void one(plan::Mesh& value) {
    auto& [sizes, order, algorithms] = value;
    all(sizes, order, algorithms);
  }
  void one(ShardingOptions& value) {
    auto& [sequence_parallel, unit_layers, prefetch, regather, bucket, no_buckets, gradient_bytes] =
        value;
    all(sequence_parallel, unit_layers, prefetch, regather, bucket, no_buckets, gradient_bytes);
  }
  void one(WeightUnit& value) {
    auto& [chunk, weights, gradients] = value;
    all(chunk, weights, gradients);
  }
  void one(Operation& value) {
    auto& [position, block, work, chunk, microbatch, place, unit, has_weights, duration, piece,
           pieces, needs, input] = value;
    all(position, block, work, chunk, microbatch, place, unit, has_weights, duration, piece, pieces,
        needs, input);
  }
  void one(Communication& value) {
    auto& [traffic, kind, members, size, chunk, microbatch, unit, holds, needs, needed_by, follows,
           input, completes, at_start_of, cut_with, algorithm, mesh, pieces, queue, after, before] =
        value;
    all(traffic, kind, members, size, chunk, microbatch, unit, holds, needs, needed_by, follows,
        input, completes, at_start_of, cut_with, algorithm, mesh, pieces, queue, after, before);
  }
  void one(StageWork& value) {
    auto& [operations, order, communications, issue, units, leaving, second_copy] = value;
    all(operations, order, communications, issue, units, leaving, second_copy);
  }

  Numbers numbers_;
};

template <typename Numbers>
void pass(Numbers numbers, Parallel& parallel, IndexedVector<DeviceId, StageWork>& stages) {
  Fields<Numbers>{std::move(numbers)}.all(parallel.gradient_sync, parallel.shard, parallel.sharding,
                                          stages);
}

}  // namespace

std::string to_text(const IterationPlan& plan) {
  std::string text;
  Parallel parallel = plan.scenario->parallel;
  IndexedVector<DeviceId, StageWork> stages = plan.stages;
  pass(NumberWriter{text}, parallel, stages);
  return text;
}

Result<IterationPlan> read_iteration(const std::string& text, const Schedule& schedule,
                                     const Scenario& scenario, Arrangement arrangement) {
  Scenario own = scenario;
  IndexedVector<DeviceId, StageWork> stages;
  pass(NumberReader{text}, own.parallel, stages);
  Result<IterationPlan> plan = iteration_of(schedule, own, arrangement);
  if (!plan) return plan;
  IterationPlan made = *std::move(plan);
  made.stages = std::move(stages);
  return made;
}

}  // namespace longhaul::collective
