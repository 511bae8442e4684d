#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace longhaul::compress {

/// The numbers that are scanned: a vector, to which another one may be added on the way.
struct Scanned {
  float* numbers = nullptr;       ///< only read where there is no addend
  const float* addend = nullptr;  ///< null: none
  std::int64_t count = 0;
};

/// Blocks with the largest scores (kernels/scan.hpp) of all that were scanned: never more than
/// twice those wanted are held. Of equal scores the lowest blocks win.
class Candidates {
public:
  /// Keeps its memory for the next vector.
  void start(std::int64_t wanted, std::int64_t all);

  /// Scans a vector for blocks with scores above `limit`, as many as are wanted. Throws NotFinite.
  void scan(const Scanned& scanned, int block, float limit);
  /// Blocks found above the limit that the scan began with; of more than are held, at least that
  /// many.
  [[nodiscard]] std::int64_t above() const { return above_; }
  /// The wanted ones, or all that were found where they are fewer: ascending.
  [[nodiscard]] std::vector<std::uint32_t> best();
  /// The least score of best(), after it was called; 0 of nothing.
  [[nodiscard]] float least() const { return least_; }

private:
  void drop_surplus();
  [[nodiscard]] std::uint64_t last_wanted_key();

  std::size_t wanted_ = 0;
  std::size_t size_ = 0;
  std::int64_t above_ = 0;
  float least_ = 0;
  std::vector<float> scores_;
  std::vector<std::uint32_t> blocks_;
  std::vector<std::uint64_t> keys_;
};

/// A limit that slightly more than `wanted` blocks exceed, judged by a sample of them; below all
/// scores where the vector is small. The sample's places follow from `seed`.
[[nodiscard]] float sampled_limit(const Scanned& scanned, int block, std::int64_t wanted,
                                  std::uint64_t seed);

}  // namespace longhaul::compress
