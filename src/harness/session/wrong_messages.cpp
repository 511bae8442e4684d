#include "harness/session/wrong_messages.hpp"

#include <cstring>
#include <type_traits>

#include <fmt/format.h>

namespace longhaul::bench {
namespace {

std::string text_of(const Plan& plan, const WrongMessage& wrong) {
  std::string text = fmt::format("iteration {}, {}: ", wrong.iteration, to_text(plan, wrong.recv));
  text += wrong.verdict == Payloads::Verdict::corrupted
              ? std::string{"corrupted"}
              : fmt::format("{} came instead", to_text(wrong.found));
  if (wrong.came_wrong_to_sender)
    text += fmt::format(", and had come so to rank {}", index(plan.op(wrong.recv).peer));
  return text;
}

}  // namespace

std::vector<std::string> gather_wrong_messages(const Ranks& ranks, const Plan& plan,
                                               const std::vector<WrongMessage>& mine) {
  static_assert(std::is_trivially_copyable_v<WrongMessage>);
  std::vector<int> counts;
  const auto bytes = ranks.world().gather(std::as_bytes(std::span{mine}), counts);
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(WrongMessage)) {
    WrongMessage wrong;
    std::memcpy(&wrong, bytes.data() + at, sizeof wrong);
    texts.push_back(text_of(plan, wrong));
  }
  return texts;
}

}  // namespace longhaul::bench
