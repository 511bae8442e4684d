#include "harness/training/state_file.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "trace/hdf5/new_file.hpp"
#include "training/parts/set_envelope.hpp"

namespace longhaul::harness {
namespace {

constexpr std::array kLetters{'L', 'H', 'S', 'T', 'A', 'T', 'E', '\0'};
constexpr std::int32_t kVersion = 1;

struct Header {
  std::array<char, 8> letters = kLetters;
  std::int32_t version = kVersion;
  std::int32_t exchanges = 0, rank = 0, ranks = 0;
  std::uint64_t curve = 0;  ///< a sum over its name
  std::uint64_t bytes = 0;  ///< of the state
  std::uint64_t sum = 0;    ///< over the state
};
static_assert(sizeof(Header) == 48);

std::uint64_t sum_of_name(const std::string& name) {
  return training::sum_of_bytes(std::as_bytes(std::span{name}));
}

template <typename... Args>
[[noreturn]] void refuse(const std::filesystem::path& file, fmt::format_string<Args...> why,
                         Args&&... args) {
  fail("--resume: {} {}. Begin anew, in another directory.", file.string(),
       fmt::format(why, std::forward<Args>(args)...));
}

}  // namespace

void replace_file(const std::filesystem::path& file,
                  std::initializer_list<std::span<const std::byte>> bytes) {
  const std::filesystem::path made = file.string() + ".new";
  std::ofstream out{made, std::ios::binary | std::ios::trunc};
  for (const std::span<const std::byte> each : bytes)
    out.write(reinterpret_cast<const char*>(each.data()),
              static_cast<std::streamsize>(each.size()));
  out.close();
  const int reason = out ? 0 : errno;
  std::error_code problem;
  const bool written = out && trace::sync_file(made) == 0;
  if (written) std::filesystem::rename(made, file, problem);
  if (!written || problem) {
    std::filesystem::remove(made, problem);
    throw Error{
        fmt::format("cannot write {} ({}). Check that there is space; --resume goes on from "
                    "the checkpoint before it.",
                    file.string(),
                    reason != 0 ? std::strerror(reason) : "it did not reach the disk"),
        ExitCode::run_failed};
  }
  trace::sync_directory_of(file);
}

void write_state(const std::filesystem::path& file, const StateOf& of,
                 std::span<const std::byte> state) {
  const Header header{.exchanges = of.exchanges,
                      .rank = of.rank,
                      .ranks = of.ranks,
                      .curve = sum_of_name(of.curve),
                      .bytes = state.size(),
                      .sum = training::sum_of_bytes(state)};
  replace_file(file, {std::as_bytes(std::span{&header, 1}), state});
}

std::vector<std::byte> read_state(const std::filesystem::path& file, const StateOf& of) {
  std::error_code problem;
  const std::uintmax_t size = std::filesystem::file_size(file, problem);
  std::ifstream in{file, std::ios::binary};
  if (problem || !in)
    refuse(file, "cannot be read ({})",
           problem ? problem.message() : std::string{std::strerror(errno)});
  Header header;
  if (size < sizeof header || !in.read(reinterpret_cast<char*>(&header), sizeof header))
    refuse(file, "has {} bytes (the header of a state has {})", size, sizeof header);
  if (header.letters != kLetters) refuse(file, "does not begin as a state does");
  if (header.version != kVersion)
    refuse(file, "is of version {} (this program reads {})", header.version, kVersion);
  if (header.bytes != size - sizeof header)
    refuse(file, "has {} bytes after its header, which says {}", size - sizeof header,
           header.bytes);
  if (header.rank != of.rank || header.ranks != of.ranks || header.exchanges != of.exchanges ||
      header.curve != sum_of_name(of.curve))
    refuse(file,
           "is of rank {} of {}{} after {} exchanges (asked for: rank {} of {} of {} after {})",
           header.rank, header.ranks,
           header.curve == sum_of_name(of.curve) ? "" : ", of another curve,", header.exchanges,
           of.rank, of.ranks, of.curve, of.exchanges);
  std::vector<std::byte> state(header.bytes);
  if (!state.empty() &&
      !in.read(reinterpret_cast<char*>(state.data()), static_cast<std::streamsize>(state.size())))
    refuse(file, "ends early, after {} bytes of {}", in.gcount(), state.size());
  if (training::sum_of_bytes(state) != header.sum)
    refuse(file, "was changed (the sum over its bytes is another)");
  return state;
}

}  // namespace longhaul::harness
