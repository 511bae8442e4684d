#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/listed_enum.hpp"

namespace longhaul::profile {

/// A product of an m x k by a k x n matrix.
struct MatmulShape {
  double m = 1, n = 1, k = 1;
  [[nodiscard]] double flops() const { return 2 * m * n * k; }
};

/// Where a time comes from: of this shape; between measured ones; beyond them.
#define LONGHAUL_TIME_BASES(X) \
  X(measured, "measured") X(interpolated, "interpolated") X(extrapolated, "extrapolated")
LONGHAUL_LISTED_ENUM(TimeBasis, LONGHAUL_TIME_BASES);

struct MatmulTime {
  double ns = 0;  ///< without the launch
  TimeBasis basis = TimeBasis::interpolated;
  double beyond = 1;  ///< how many times outside the measured range a side is; 1: inside
};

/// Times of matrix products on a GPU: a law with few constants, corrected by measured neighbours.
///
/// The law: launch + 2 m n k / rate * (1 + pad_m / m) (1 + pad_n / n) (1 + pad_k / k): a product
/// whose sides are small fills tiles and waves of the GPU in part. The correction: the mean of the
/// logarithms of measured over law of the shapes around, weighted by their distance in powers of
/// two; far from all of them it fades.
class MatmulLaw {
public:
  struct Constants {
    double launch_ns = 5e3;
    double flops_per_ns = 250e3;
    double pad_m = 0, pad_n = 0, pad_k = 0;
  };
  struct Measured {
    MatmulShape shape;
    double ns = 0;
  };

  MatmulLaw() = default;
  MatmulLaw(const Constants& constants, std::vector<Measured> table);

  /// By law and neighbours; without the launch.
  [[nodiscard]] MatmulTime time(const MatmulShape& shape) const;
  /// By the law alone, without the launch.
  [[nodiscard]] double law_ns(const MatmulShape& shape) const;
  /// Mean relative error of each measured shape, from the law and all the others.
  [[nodiscard]] double leave_one_out_error() const;
  [[nodiscard]] const Constants& constants() const { return constants_; }
  [[nodiscard]] const std::vector<Measured>& table() const { return table_; }

private:
  [[nodiscard]] double correction(const MatmulShape& shape, std::size_t without) const;
  struct Point {
    double m, n, k;  ///< powers of two
    double residual;
  };
  Constants constants_;
  std::vector<Measured> table_;
  std::vector<Point> points_;
  double low_ = 1, high_ = 1e9;  ///< the shortest and the longest measured side
};

/// Reads "m,n,k,ns" lines (a header, then whole numbers). Throws Error "source:line: ...".
[[nodiscard]] std::vector<MatmulLaw::Measured> read_matmul_table(std::string_view csv,
                                                                 const std::string& source);

}  // namespace longhaul::profile
