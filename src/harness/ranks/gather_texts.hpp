#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/group/communicator.hpp"

namespace longhaul::harness {

/// Collective: rank 0 gets every rank's text, in order of rank; the others nothing.
[[nodiscard]] inline std::vector<std::string> gather_texts(const comm::Communicator& world,
                                                           const std::string& mine) {
  std::vector<int> counts;
  const auto all = world.gather(std::as_bytes(std::span{mine}), counts);
  std::vector<std::string> texts;
  if (world.rank() != 0) return texts;
  const char* at = reinterpret_cast<const char*>(all.data());
  for (const int count : counts) {
    texts.emplace_back(at, at + count);
    at += count;
  }
  return texts;
}

}  // namespace longhaul::harness
