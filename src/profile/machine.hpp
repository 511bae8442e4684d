#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "profile/matmul_law.hpp"
#include "profile/parameters.hpp"

namespace longhaul::profile {

/// Times of an all-reduce inside one node, by ranks and size, as measured alone.
class AllReduceTable {
public:
  struct Measured {
    int ranks = 2;
    double bytes = 0;
    double ns = 0;
  };
  AllReduceTable() = default;
  /// In any order. `faster`: how many times faster than the table this machine's links are.
  explicit AllReduceTable(std::vector<Measured> table, double faster = 1);

  /// Between two sizes on the line through them; beyond the last at its rate; below the first it
  /// falls towards two fifths of it, the latency. Of a number of ranks that no one measured: the
  /// next larger one's, or equation 1 on the largest one's rate. 0 for one rank.
  [[nodiscard]] double ns(int ranks, double bytes) const;

private:
  std::vector<Measured> table_;  ///< by ranks, then size
  double faster_ = 1;
};

/// Reads "ranks,size_bytes,ns" lines. Throws Error "source:line: ...".
[[nodiscard]] std::vector<AllReduceTable::Measured> read_all_reduce_table(
    std::string_view csv, const std::string& source);

/// What one GPU can do: a data sheet and what was measured of it.
struct Gpu {
  std::string name;
  double flops_per_ns = 0;  ///< peak of dense products at half precision
  MatmulLaw matmul;
  AllReduceTable all_reduce;
  double collective_share = 0;   ///< of its rate that computing loses beside a collective
  double link_bytes_per_ns = 0;  ///< to the other GPUs of its node, each way
};

/// A kind of machine: GPUs in nodes, nodes in a network, and the parameters that stand between
/// these and a training run.
struct Machine {
  std::string name;
  Gpu gpu;
  int gpus_per_node = 8;
  Bytes memory;                    ///< of a GPU
  double memory_bytes_per_ns = 0;  ///< data sheet
  double node_bytes_per_ns = 0;    ///< of a node's interfaces together, each way; data sheet
  ParameterValues parameters;      ///< nothing of them was fitted to iteration times
  std::string source;              ///< where the numbers come from, for people
};

/// Names of the machines that the program carries (src/profile/machines/).
[[nodiscard]] std::span<const std::string> machine_names();

/// The machine of that name; made once. Throws Error with the nearest name where there is none.
[[nodiscard]] const Machine& machine_named(std::string_view name);

/// The machine of a text in TOML, which names a GPU that the program carries. Throws Error with the
/// place of what is wrong.
[[nodiscard]] Machine read_machine(std::string_view text, const std::string& source);

}  // namespace longhaul::profile
