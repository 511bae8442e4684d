#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "base/units.hpp"

namespace longhaul::planner {

/// One probe training run (StellaTrain, section 4.3): the loss at a batch of all replicas and a
/// compression rate, less the loss without compression and staleness.
struct Probe {
  double batch = 0;  ///< may be fractional
  double compression_rate = 0;
  double g = 0;
};

/// Probes of one model.
struct ProbeTable {
  std::string model;  ///< as written
  std::vector<Probe> probes;
  std::optional<Duration> took{};  ///< to run them all; nullopt: the table does not say
};

/// Reads a table with the columns model, version, batch, compression_rate, g, and perhaps took_ns,
/// in any order, others left aside. Throws Error with file:line where a number is none or out of
/// range, where models differ, and where there are fewer than 3 or more than 1000 probes.
[[nodiscard]] ProbeTable read_probes(std::string_view csv, const std::string& source);

/// "ViT_B_16" and "vit-b-16" are one.
[[nodiscard]] bool is_same_model(std::string_view one, std::string_view other);

/// Mean and standard deviation of g at a point, by the probes.
struct SurrogateEstimate {
  double mean = 0, deviation = 0;
};

/// Variances of the surface, and of a probe around it.
struct SurrogateSpread {
  double surface = 0, noise = 0;
};

/// A Gaussian process over (batch, compression rate), both linear, with a Matern kernel of
/// smoothness 5/2 and a length scale each. Length scales, spread and noise are the likeliest ones
/// (Rasmussen and Williams 2006, 2.3 and 5.4.1), found by Nelder-Mead from fixed starts: the same
/// on every machine.
class Surrogate {
public:
  explicit Surrogate(std::vector<Probe> probes);

  [[nodiscard]] double g(double batch, double rate) const;
  [[nodiscard]] SurrogateEstimate estimate(double batch, double rate) const;
  /// Root mean square of what each probe differs from what the others say of it (parameters kept).
  [[nodiscard]] double leave_one_out_rms() const;
  /// In samples and in compression rate.
  [[nodiscard]] std::array<double, 2> length_scales() const;
  [[nodiscard]] SurrogateSpread spread() const;
  /// Batches of the probes: beyond them nothing was measured.
  [[nodiscard]] double least_batch() const { return least_batch_; }
  [[nodiscard]] double largest_batch() const { return largest_batch_; }

private:
  struct Parameters {
    std::array<double, 2> lengths{};
    double variance = 0, noise = 0;
  };
  [[nodiscard]] double kernel(const Parameters& parameters, double batch, double rate,
                              const Probe& other) const;
  /// Lower factor of the probes' covariance; empty where that is not positive definite.
  [[nodiscard]] std::vector<double> factor(const Parameters& parameters) const;
  [[nodiscard]] double negative_log_likelihood(const Parameters& parameters) const;
  void fit();

  std::vector<Probe> probes_;
  double mean_ = 0, least_batch_ = 0, largest_batch_ = 0;
  Parameters parameters_;
  std::vector<double> factor_;
  std::vector<double> weights_;  ///< of the kernel with each probe
};

/// Which setting StellaTrain's algorithm 1 probes next: a random rate, and the batch that promises
/// most at that rate by what is known (lines 14 and 15). The same from one seed.
class ProbeSearch {
public:
  /// `least` and `most` samples of all replicas.
  ProbeSearch(int least, int most, std::uint64_t seed);

  struct Setting {
    int batch = 0;
    double compression_rate = 0;
  };
  /// The batch is a random one until three probes are known, which a surface takes.
  [[nodiscard]] Setting next();
  void add(double batch, double compression_rate, double g) {
    probes_.push_back({batch, compression_rate, g});
  }
  [[nodiscard]] const std::vector<Probe>& probes() const { return probes_; }

private:
  int least_, most_;
  Random random_;
  std::vector<Probe> probes_;
};

/// How much below `best` a value is expected to be, counting 0 where it is not.
[[nodiscard]] double expected_improvement(const SurrogateEstimate& estimate, double best);

}  // namespace longhaul::planner
