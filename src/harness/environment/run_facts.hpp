#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace longhaul::harness {

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

}  // namespace longhaul::harness
