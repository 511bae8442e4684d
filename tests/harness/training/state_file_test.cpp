#include "harness/training/state_file.hpp"

#include <fstream>

#include <gmock/gmock.h>

#include "base/error.hpp"
#include "support/file_text.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::harness {
namespace {

using ::testing::HasSubstr;

class StateFiles : public ::testing::Test {
protected:
  [[nodiscard]] std::filesystem::path file() const { return scratch_.path() / "8.1.state"; }
  [[nodiscard]] std::string why_not(const StateOf& of) const {
    try {
      (void)read_state(file(), of);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(file().string() + " ")) << "which file it is";
      return error.what();
    }
    return "taken";
  }
  void put(const std::string& bytes) const {
    std::ofstream{file(), std::ios::binary | std::ios::trunc} << bytes;
  }

  testing::ScratchDirectory scratch_;
  StateOf of_{"curve dgc seed 1", 8, 1, 3};
  std::vector<std::byte> state_{std::byte{1}, std::byte{2}, std::byte{3}};
};

TEST_F(StateFiles, ComeBackAsTheyWere) {
  for (const std::size_t size : {0U, 1U, 3U}) {
    state_.resize(size);
    write_state(file(), of_, state_);
    EXPECT_EQ(read_state(file(), of_), state_);
  }
}

TEST_F(StateFiles, OfSomethingElseAreRefused) {
  write_state(file(), of_, state_);
  const auto with = [&](auto change) {
    StateOf other = of_;
    change(other);
    return why_not(other);
  };
  EXPECT_THAT(with([](StateOf& other) { other.rank = 2; }), HasSubstr("is of rank 1 of 3 after 8"));
  EXPECT_THAT(with([](StateOf& other) { other.ranks = 4; }), HasSubstr("asked for: rank 1 of 4"));
  EXPECT_THAT(with([](StateOf& other) { other.exchanges = 4; }), HasSubstr("after 4)"));
  EXPECT_THAT(with([](StateOf& other) { other.curve = "curve demo seed 1"; }),
              HasSubstr("of another curve"));
  EXPECT_EQ(why_not(of_), "taken");
}

TEST_F(StateFiles, OfWhichABitOrAByteIsMissingAreRefused) {
  EXPECT_THAT(why_not(of_), HasSubstr("cannot be read (No such file"));
  write_state(file(), of_, state_);
  const std::string whole = testing::file_text(file());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(whole.substr(0, size));
    EXPECT_THAT(why_not(of_),
                HasSubstr(size < 48 ? "the header" : "after its header, which says 3"))
        << size;
  }
  put(whole + "x");
  EXPECT_THAT(why_not(of_), HasSubstr("has 4 bytes after its header"));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    put(changed);
    const std::string why = why_not(of_);
    EXPECT_NE(why, "taken") << "byte " << at;
    EXPECT_EQ(why.find("is of version 0 (this program reads 1)") != std::string::npos, at == 8);
  }
  put(std::string(100, 'x'));
  EXPECT_THAT(why_not(of_), HasSubstr("does not begin as a state"));
}

}  // namespace
}  // namespace longhaul::harness
