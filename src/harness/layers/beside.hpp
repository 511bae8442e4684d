#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cuda/urgency.hpp"
#include "harness/layers/layer_parts.hpp"

/// A layer that trains, and what else its device does at the same time (bench_layers --beside).
namespace longhaul::harness {

/// Makes the arithmetic of the device, with a stream of its own of that priority.
using MathMaker = std::function<std::unique_ptr<nn::TensorOps>(cuda::Urgency)>;

struct BesideOptions {
  nn::ModelShape shape;                    ///< of the layer that trains
  int prompt = 512;                        ///< tokens of the prompt of which a layer is computed
  int samples = 20;                        ///< rounds of each case, at least
  int turns = 5;                           ///< in which it takes them
  std::size_t traffic_bytes = 64U << 20U;  ///< of each copy
  bool prefill = true, traffic = true;
  bool streams = true;  ///< false: the device has no streams, so what stands in order is all
};

/// Work beside the layer: seconds of its passes, without the layer and during it.
struct SideWork {
  std::string name;
  double bytes = 0;  ///< that arrive in a pass; 0: a prompt's layer
  std::vector<double> alone, during;
};

/// The layer under one condition. `parts`: F, B, D and W, and "F+B" of each round.
struct BesideCase {
  std::string name;
  std::string against;  ///< name of the case without the work beside; empty: this is one
  std::vector<LayerPart> parts;
  std::optional<SideWork> side;

  [[nodiscard]] const LayerPart& part(const std::string& called) const;
};

struct BesideReport {
  BesideOptions options;
  std::string device, notes;
  std::vector<BesideCase> cases;

  [[nodiscard]] const BesideCase* find(const std::string& name) const;
  /// Median of a part over that of the case it stands against; nullopt where it stands alone.
  [[nodiscard]] std::optional<double> slowdown(const BesideCase& of, const std::string& part) const;
};

/// Names of the cases whose slowdown is that of messages.
inline constexpr const char* kBesideSum = "sum on 16 multiprocessors";
inline constexpr const char* kBesideHost = "copy from the host";

/// Cases take turns, a few rounds at a time, so that a device that gets warm slows all of them.
/// Throws Error (the answer is no) where the layer's output differs between them.
[[nodiscard]] std::vector<BesideCase> measure_beside(const MathMaker& make,
                                                     const BesideOptions& options);

/// [overlap] of a scenario, two lines: inside a node a collective library's sum, between nodes the
/// copy that a message makes from the host. nullopt where these were not measured.
[[nodiscard]] std::optional<std::string> overlap_section(const BesideReport& report);
[[nodiscard]] std::string beside_table(const BesideReport& report);
[[nodiscard]] nlohmann::ordered_json beside_record(const BesideReport& report,
                                                   const std::string& command_line);

/// Copies of so many parameters of 2 bytes from pinned and from ordinary memory of the host to the
/// device. Throws Error where `math` is no GPU's.
[[nodiscard]] std::vector<LayerPart> time_loads(nn::TensorOps& math, double parameters,
                                                int samples);

}  // namespace longhaul::harness
