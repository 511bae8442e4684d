#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/program/arguments.hpp"
#include "base/table.hpp"

namespace longhaul::harness {

/// Options that several benchmarks share, as typed; each benchmark declares those that it knows.
struct SharedOptions {
  std::filesystem::path out;
  bool json = false;
  bool check = false;
  bool wide = false;
  std::string confidence;  ///< "5%"; empty: a fixed number of samples
  std::string device = "cpu";
  std::string transport = "auto";
  std::string deadline = "10s";
  int ranks_per_process = 1;
  std::vector<std::string> overrides;  ///< PATH=VALUE
  std::string command_line;

  [[nodiscard]] TableWidth table_width() const {
    return wide ? TableWidth::whole : TableWidth::fitting;
  }
};

enum class Shared {
  out,
  json,
  wide,
  check,
  confidence,
  device,
  transport,
  deadline,
  ranks,
  overrides
};

/// One of them, and its line in the help; empty: the usual one.
struct SharedOption {
  Shared which;
  std::string description{};
};

/// Declares the chosen ones in that order, which is that of the help.
void add_shared_options(Arguments& arguments, SharedOptions& options,
                        std::initializer_list<SharedOption> chosen);

/// The one declaration of --device, for those whose record of it is elsewhere.
Argument add_device_option(Arguments& arguments, std::string& device,
                           const std::string& description);

/// Below the help: lines that work in the root of a checkout, and exit codes.
[[nodiscard]] std::string help_footer(std::initializer_list<const char*> examples);

constexpr const char* kRanksPerProcess = "--ranks-per-process";
constexpr int kMostRanksPerProcess = 1024;

}  // namespace longhaul::harness
