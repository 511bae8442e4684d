#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "compress/select/candidates.hpp"
#include "compress/select/sparsifier.hpp"
#include "harness/compress_device/compress_device.hpp"

namespace longhaul::harness {
namespace {

using device::DeviceGradient;
using device::GradientChoice;
using device::ResidualPlace;

/// One of the kernels and copies: its bytes for each number, and what it takes.
struct TimedWork {
  const char* name;
  double bytes_each;
  std::function<void(DeviceGradient&)> run;
  std::optional<GradientChoice> choice{};
};

TimedWork selection(const char* name, const GradientChoice& choice) {
  const double bytes = choice.residual == ResidualPlace::apart ? 12 : 4;
  return {name, bytes, [choice](DeviceGradient& gradient) { gradient.select(choice); }, choice};
}

std::vector<TimedWork> all_works(const DeviceThresholds& of) {
  return {{kCopyWithin, 8, [](DeviceGradient& gradient) { gradient.copy_within(); }},
          selection(kBlocksApart, {16, of.blocks, ResidualPlace::apart}),
          selection(kSinglesApart, {1, of.singles, ResidualPlace::apart}),
          selection(kBlocksWithin, {16, of.blocks, ResidualPlace::in_gradient}),
          selection(kSinglesWithin, {1, of.singles, ResidualPlace::in_gradient}),
          {"copy to pinned memory", 4, [](DeviceGradient& gradient) { gradient.copy_out(); }},
          {"copy from pinned memory", 4, [](DeviceGradient& gradient) { gradient.copy_in(); }}};
}

/// Bytes of what is taken: values and places are written, and zeros in their place where the
/// gradient is not written as a whole.
double bytes_of_taken(const GradientChoice& choice, const compress::SparseSet& set) {
  const double numbers = 4.0 * static_cast<double>(set.values.size());
  const double places = 4.0 * static_cast<double>(set.blocks.size());
  return places + (choice.residual == ResidualPlace::apart ? numbers : 2 * numbers);
}

/// What a host's kernel takes of the same gradient, and leaves. The residual is zero: a sum of it
/// and the gradient differs from that in the sign of zeros alone.
void expect_host(const char* name, const GradientChoice& choice, std::span<const float> gradient,
                 const compress::SparseSet& found, std::vector<float> left) {
  const auto count = static_cast<std::int64_t>(gradient.size());
  compress::Candidates candidates;
  const std::int64_t all = (count + choice.block - 1) / choice.block;
  candidates.start(all, all);
  // Without an addend the scan only reads.
  candidates.scan({const_cast<float*>(gradient.data()), nullptr, count},  // NOLINT
                  choice.block, choice.threshold * static_cast<float>(choice.block));
  bool equal = found.blocks == candidates.best();
  if (equal) compress::add_to(left, found);
  for (std::size_t i = 0; equal && i < gradient.size(); ++i) equal = left[i] == gradient[i];
  compress::each_block(found, [&](std::size_t place, std::size_t at, std::size_t size) {
    for (std::size_t i = 0; equal && i < size; ++i)
      equal = found.values[at + i] == gradient[place + i];
  });
  if (!equal)
    throw Error{fmt::format("{}: the device takes other numbers than the host (a kernel is wrong). "
                            "Run the tests.",
                            name),
                ExitCode::answer_is_no};
}

device::TakenBlocks taken_of(const char* name, DeviceGradient& gradient) {
  device::TakenBlocks taken = gradient.taken();
  if (taken.set.blocks.empty())
    throw Error{fmt::format("{}: {} blocks are above the threshold, which is none, or more than "
                            "there is room for (numbers of other seeds differ too much). Give "
                            "another --seed, or a larger --count.",
                            name, taken.above),
                ExitCode::run_failed};
  return taken;
}

}  // namespace

DeviceThresholds device_thresholds(const CompressDeviceOptions& options, LargeNumbers& numbers) {
  numbers.fill(options.seed);
  const auto threshold_of = [&](int block) {
    compress::Sparsifier sparsifier{{.method = compress::Method::threshold,
                                     .keep = compress::parse_keep("--keep", options.keep),
                                     .block = block},
                                    options.count};
    static_cast<void>(sparsifier.take_without_feedback(numbers.all()));
    return sparsifier.state().threshold;
  };
  return {threshold_of(16), threshold_of(1)};
}

std::vector<DeviceCost> time_device_kernels(const CompressDeviceOptions& options,
                                            const DeviceThresholds& thresholds,
                                            LargeNumbers& numbers, DeviceGradient& gradient) {
  const std::vector<TimedWork> works = all_works(thresholds);
  std::vector<DeviceCost> costs;
  for (const TimedWork& work : works)
    costs.push_back({work.name, work.bytes_each * static_cast<double>(options.count), 0, {}});
  for (int round = 0; round <= options.repetitions; ++round) {
    numbers.fill(options.seed + 1000 * static_cast<std::uint64_t>(round + 1));
    gradient.load(numbers.all());
    for (std::size_t i = 0; i < works.size(); ++i) {
      const TimedWork& work = works[i];
      gradient.restart();  // which pushes all else out of the caches
      const double seconds = gradient.seconds_of([&] { work.run(gradient); });
      if (work.choice) {
        const compress::SparseSet set = taken_of(work.name, gradient).set;
        if (round == 0) expect_host(work.name, *work.choice, numbers.all(), set, gradient.left());
        costs[i].taken = std::ssize(set.values);
        costs[i].bytes = work.bytes_each * static_cast<double>(options.count) +
                         bytes_of_taken(*work.choice, set);
      }
      if (round > 0) costs[i].seconds.push_back(seconds);  // the first one loads kernels
    }
  }
  return costs;
}

}  // namespace longhaul::harness
