// Every input that was ever interesting, through the promise of its target.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "fuzz/targets.hpp"
#include "support/shipped.hpp"

#if defined(__SANITIZE_ADDRESS__)
/// HDF5 1.10 leaks what it had read of a file before it gave up.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }  // NOLINT
#endif

namespace longhaul {
namespace {

void run_corpus(const std::string& target, void (*promise)(std::string_view)) {
  const std::filesystem::path corpus = testing::checkout() / "tests/fuzz/corpus" / target;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{corpus}) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream in{entry.path(), std::ios::binary};
    const std::string bytes{std::istreambuf_iterator<char>{in}, {}};
    EXPECT_NO_THROW(promise(bytes));
    ++count;
  }
  EXPECT_GE(count, 10);
}

TEST(Corpus, Scenario) { run_corpus("scenario", fuzz::scenario); }
TEST(Corpus, ScheduleCsv) { run_corpus("schedule_csv", fuzz::schedule_csv); }
TEST(Corpus, Payload) { run_corpus("payload", fuzz::payload); }
TEST(Corpus, Profile) { run_corpus("profile", fuzz::profile); }
TEST(Corpus, Requests) { run_corpus("requests", fuzz::requests); }
TEST(Corpus, Service) { run_corpus("service", fuzz::service); }
TEST(Corpus, Trace) { run_corpus("trace", fuzz::trace); }

}  // namespace
}  // namespace longhaul
