#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/environment/shared_options.hpp"

namespace longhaul::harness {

/// Options of bench_compress.
struct CompressCostOptions : SharedOptions {
  std::int64_t count = 86'567'648;  ///< numbers: ViT-B-16 with 1000 classes
  std::string keep = "1%";
  int repetitions = 5;
  std::uint64_t seed = 1;
  int parts = 12;               ///< of --costs
  std::filesystem::path costs;  ///< file to write; empty: none
};

/// Numbers in memory of their own, in huge pages where the system gives them.
class LargeNumbers {
public:
  explicit LargeNumbers(std::int64_t count);
  ~LargeNumbers();
  LargeNumbers(const LargeNumbers&) = delete;
  LargeNumbers& operator=(const LargeNumbers&) = delete;

  [[nodiscard]] std::span<float> all() { return {data_, size_}; }
  /// Numbers as gradients have them: few are large; others for each seed.
  void fill(std::uint64_t seed);
  void clear();

private:
  float* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Times of one kernel, caches cold and other indices in every repetition.
struct KernelCost {
  std::string name;
  std::vector<double> seconds;  ///< of each repetition
  double bytes = 0;             ///< read and written, of one repetition
  std::int64_t kept = 0;        ///< numbers that the last repetition kept or touched
  /// Of each repetition, the first block of each set that was drawn for it; of none where it works
  /// on all numbers.
  std::vector<std::vector<std::uint32_t>> first_blocks;
  /// Medians of the same run: the least that reading, or copying, all numbers takes.
  double over_read = 0, over_copy = 0;
};

/// Runs every kernel; `read` and `memcpy` first, and again in each repetition.
[[nodiscard]] std::vector<KernelCost> measure_kernels(const CompressCostOptions& options);

/// Throws Error (the answer is no) unless results are equal bits at every level of the processor,
/// and nothing gets lost.
void check_kernels();

/// For people, and as JSON text.
[[nodiscard]] std::string kernel_table(const std::vector<KernelCost>& costs,
                                       const CompressCostOptions& options);
[[nodiscard]] std::string kernel_record(const std::vector<KernelCost>& costs,
                                        const CompressCostOptions& options);
/// Costs of one of so many equal parts, with the keys of [train.costs].
[[nodiscard]] std::string part_costs(const std::vector<KernelCost>& costs,
                                     const CompressCostOptions& options);

}  // namespace longhaul::harness
