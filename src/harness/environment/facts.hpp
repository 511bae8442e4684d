#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace longhaul::harness {

/// Root directory and libraries in which facts are looked up; tests give others.
struct FactSources {
  std::filesystem::path root = "/";
  std::string nvml = "libnvidia-ml.so.1";
  std::string nccl = "libnccl.so.2";
};

/// A record's facts of its host that hwloc does not know: `governor` (of the cores' clocks,
/// several of them with commas), `gpus` (name and PCI address of each), `gpu_driver`, `nccl`. Null
/// stands for a fact that is absent or unknown. Needs neither CUDA nor MPI.
[[nodiscard]] nlohmann::json host_facts(const FactSources& sources = {});

/// For programs without hwloc: name, kernel, processor, threads (online) and memory_bytes, and
/// the facts above.
[[nodiscard]] nlohmann::json whole_host_facts(const FactSources& sources = {});

/// `gpus`, `gpu_driver` and `nccl` of host_facts(): from /proc/driver/nvidia; where a container
/// hides that, from NVML. NCCL is loaded only where there is a GPU.
[[nodiscard]] nlohmann::json gpu_facts(const FactSources& sources);

/// "NAME=VALUE" each.
using Variables = std::vector<std::string>;
[[nodiscard]] Variables environment_variables();

/// The program and its call: `version`, `git_commit`, `git_dirty` (files differed from the
/// commit; null: built outside a clone), `command_line`.
[[nodiscard]] nlohmann::json program_facts(const std::string& command_line);

/// The Slurm job around a program: its id, name, partition, nodes, tasks, and its resources;
/// null outside a job. Keys are Slurm's own without SLURM_, in lower case.
[[nodiscard]] nlohmann::json job_facts(const Variables& variables);

/// Parameters of MPI and of the libraries below it that the environment sets (OMPI_MCA_*, UCX_*,
/// FI_*, ...); those that a launcher hands its ranks for its own use are left out.
[[nodiscard]] nlohmann::json mpi_parameters(const Variables& variables);

/// `environment` of the record of a program that is one process: hosts, program, slurm.
[[nodiscard]] nlohmann::json local_environment(const std::string& command_line);

/// The command line as typed, words with special characters in quotes.
[[nodiscard]] std::string command_line(int argc, char** argv);

/// "2026-01-31T12:00:00Z".
[[nodiscard]] std::string now_in_words();

}  // namespace longhaul::harness
