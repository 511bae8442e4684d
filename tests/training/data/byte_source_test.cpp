// Bytes at any place of a file; SHA-256 against the examples of FIPS 180-2 (appendix B) and of
// NIST.
#include "training/data/byte_source.hpp"

#include <utility>

#include "files.hpp"

namespace longhaul::testing {
namespace {

using training::Sha256;
using training::sha256;

constexpr const char* kOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kOfAMillion =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, OfTheExamplesOfNist) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), kOfAbc);
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), kOfAMillion);
}

TEST(Sha256, TakesBytesPieceByPiece) {
  Sha256 digest;
  digest.add("a");
  digest.add("");
  Sha256 moved = std::move(digest);
  moved.add("bc");
  EXPECT_EQ(moved.hexadecimal(), kOfAbc);
}

/// 10 MB: three stretches, the last of which is short.
TEST(Sha256, OfPartOfASource) {
  std::string text(10'000'000, 'b');
  text.replace(5, 1'000'000, 1'000'000, 'a');
  text[9'999'999] = 'c';
  const auto source = training::bytes_of_text(text);
  EXPECT_EQ(training::sha256_of(*source, 5, 1'000'005), kOfAMillion);
  EXPECT_EQ(training::sha256_of(*source, 0, 10'000'000), sha256(text));
  EXPECT_EQ(training::sha256_of(*source, 7, 7), sha256(""));
}

class ByteSource : public DataFiles {};

/// A sparse one: 100 GB that take no room.
TEST_F(ByteSource, ReadsAnywhereInAHundredGigabytes) {
  const std::string file = write("large", "");
  std::filesystem::resize_file(file, 100'000'000'000);
  {
    std::fstream stream{file, std::ios::binary | std::ios::in | std::ios::out};
    stream.seekp(99'999'999'990);
    stream << "the end";
  }
  const auto bytes = training::bytes_of_file(file);
  EXPECT_EQ(bytes->size(), 100'000'000'000);
  std::string into(10, '?');
  bytes->read(99'999'999'990, into);
  EXPECT_EQ(into, std::string("the end\0\0\0", 10));
  EXPECT_EQ(training::sha256_of(*bytes, 99'999'999'990, 99'999'999'997), sha256("the end"));
}

}  // namespace
}  // namespace longhaul::testing
