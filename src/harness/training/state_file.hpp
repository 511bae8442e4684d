#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace longhaul::harness {

/// Whole or not at all, also where the machine fails: a new file of these bytes, in their order, in
/// the place of the old one, which is on the disk before it has the name. Throws Error, exit code
/// 3, where that cannot be.
void replace_file(const std::filesystem::path& file,
                  std::initializer_list<std::span<const std::byte>> bytes);

/// What a state is of: one of so many ranks, after so many exchanges of a curve.
struct StateOf {
  std::string curve;
  int exchanges = 0;
  int rank = 0, ranks = 1;
};

/// A rank's part of a checkpoint: a header that says what it is of and how long it is, with a sum
/// over all bytes, and the state.
void write_state(const std::filesystem::path& file, const StateOf& of,
                 std::span<const std::byte> state);

/// Takes nothing on trust: throws Error that names the file where it is missing, none of these, cut
/// short, longer than it says, changed, or of something else.
[[nodiscard]] std::vector<std::byte> read_state(const std::filesystem::path& file,
                                                const StateOf& of);

}  // namespace longhaul::harness
