// What a Python has at hand, by a real one with a small library, and by those that fail.
#include <gmock/gmock.h>

#include "files.hpp"
#include "training/data/data_kinds.hpp"

namespace longhaul::testing {
namespace {

using namespace training;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class PythonSources : public DataFiles {
protected:
  /// A Python whose library is the folder `library`, and which has packages only from `packages`.
  void use_small_python() const {
    use_python("export PYTHONPATH='" + path("packages").string() +
               "'\nexec python3 -S -c \"import sysconfig\nsysconfig.get_paths = lambda: "
               "{'stdlib': '" +
               path("library").string() + "'}\n$2\"");
  }
};

TEST_F(PythonSources, AreInTheOrderOfTheirPathsWithoutTests) {
  write("library/zebra.py", "z\n");
  write("library/_a.py", "_a");
  write("library/Upper.py", "U");
  write("library/a/inner.py", "i");
  write("library/a/test/left_out.py", "NO");
  write("library/a.py", "a");  // "a.py" < "a/inner.py": '.' is before '/'
  write("library/a/data.txt", "NO");
  write("library/test/left_out.py", "NO");
  write("library/tests/left_out.py", "NO");
  write("library/site-packages/left_out.py", "NO");
  write("library/dist-packages/left_out.py", "NO");
  write("library/\xff.py", "latin");
  std::filesystem::create_symlink(path("library/a.py"), path("library/link.py"));
  use_small_python();
  const PythonText read = python_sources();
  EXPECT_EQ(read.text, "U_aaiz\nlatin");
  EXPECT_THAT(read.version, MatchesRegex("3\\.[0-9]+\\.[0-9]+.*"));
}

TEST_F(PythonSources, EndAtTenMillionBytes) {
  write("library/a.py", std::string(9'999'990, 'a'));
  write("library/b.py", "0123456789more");
  write("library/c.py", "c");
  use_small_python();
  const std::string text = python_sources().text;
  EXPECT_EQ(text.size(), 10'000'000U);
  EXPECT_EQ(text.substr(9'999'988), "aa0123456789");
}

/// The library of the Python that is here.
TEST_F(PythonSources, AreTheDefaultText) {
  unsetenv("LONGHAUL_PYTHON");
  const nn::ModelShape shape{.sequence = 128, .vocabulary = 256};
  const auto data = open_data("text", shape, 1), same = open_data("text:python", shape, 1);
  const DataFacts &facts = data->facts(), &again = same->facts();
  EXPECT_THAT(facts.name, StartsWith("text:python 3."));
  EXPECT_EQ(facts.train.sha256, again.train.sha256);
  EXPECT_EQ(facts.held_out.sha256, again.held_out.sha256);
  const std::int64_t bytes = facts.train.bytes + facts.held_out.bytes;
  EXPECT_GT(bytes, 100'000);
  EXPECT_LE(bytes, 10'000'000);
  EXPECT_EQ(facts.held_out.bytes, bytes / 10);
  EXPECT_EQ(facts.train.samples, (facts.train.bytes - 1) / 128);
}

TEST_F(PythonSources, SayWhatAPythonCouldNotDo) {
  use_python("echo Traceback >&2; echo 'ImportError: no os' >&2; exit 1");
  EXPECT_THAT(refusal("text:python", 8),
              AllOf(HasSubstr("could not read its library (ImportError: no os)"),
                    HasSubstr("Set LONGHAUL_PYTHON")));
  use_python("exit 0");
  EXPECT_THAT(refusal("text:python", 8), HasSubstr("has no library of sources"));
  use_python("kill -9 $$");
  EXPECT_THAT(refusal("digits", 64), HasSubstr("the digits of scikit-learn (it said nothing)"));
  setenv("LONGHAUL_PYTHON", "/nowhere/python", 1);
  EXPECT_THAT(refusal("text", 8), HasSubstr("cannot start /nowhere/python"));
}

TEST_F(PythonSources, FindDigitsInScikitLearn) {
  write("packages/sklearn/__init__.py", "raise ImportError('must not be imported')");
  std::string row;
  for (int column = 0; column < 64; ++column) row += "16,";
  std::string table;
  for (int i = 0; i < 361; ++i) table += row + "7\n";
  const std::string plain = write("packages/sklearn/datasets/data/digits.csv", table);
  ASSERT_EQ(std::system(("gzip '" + plain + "'").c_str()), 0);
  use_small_python();
  const auto data = open_data("digits", {.sequence = 64, .vocabulary = 17}, 1);
  EXPECT_EQ(data->facts().name, "digits");
  EXPECT_EQ(data->facts().train.sha256, sha256(std::string(64, '\x10') + '\x07'));
  EXPECT_EQ(data->held_out(1, 1)[0].targets.back(), 7);
}

TEST_F(PythonSources, SayHowToInstallScikitLearn) {
  use_small_python();
  const std::string python = path("python").string();
  EXPECT_EQ(refusal("digits", 64),
            python + " has no scikit-learn (digits are among its files). Run '" + python +
                " -m pip install scikit-learn', or give a table: "
                "digits:PATH.");
  write("packages/sklearn/__init__.py", "");
  EXPECT_THAT(refusal("digits", 64), HasSubstr("FileNotFoundError"));
}

}  // namespace
}  // namespace longhaul::testing
