#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "profile/explanation.hpp"
#include "profile/import/imported_profile.hpp"

namespace longhaul::profile {
namespace {

using ::testing::HasSubstr;

std::string event(const std::string& category, const std::string& name, double start, double length,
                  const std::string& args) {
  return fmt::format(
      "{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"ts\": {}, \"dur\": {}, \"tid\": 1, "
      "\"args\": {{{}}}}}",
      category, name, start, length, args);
}

/// A product of two kernels, a backward's product, an optimizer's step, a kernel of no one.
std::string trace(double first = 0) {
  const std::string half = "\"Input type\": [\"c10::Half\", \"c10::Half\"]";
  const std::vector<std::string> events{
      event("user_annotation", "ProfilerStep#1", first + 0, 1000, ""),
      event("cpu_op", "aten::linear", first + 10, 5,
            "\"External id\": 1, \"Input Dims\": [[2, 3, 64], [192, 64]], " + half),
      event("cuda_runtime", "cudaLaunchKernel", first + 11, 1,
            "\"External id\": 1, \"correlation\": 71"),
      event("cuda_runtime", "cudaLaunchKernel", first + 12, 1,
            "\"External id\": 1, \"correlation\": 72"),
      event("kernel", "sgemm", first + 20, 100, "\"External id\": 1, \"correlation\": 71"),
      event("kernel", "splitK", first + 125, 10.5, "\"External id\": 1, \"correlation\": 72"),
      event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", first + 200, 50,
            "\"External id\": 2"),
      event("cpu_op", "aten::mm", first + 210, 5,
            "\"External id\": 3, \"Input Dims\": [[6, 192], [192, 64]], " + half),
      event("kernel", "dgrad", first + 230, 60, "\"External id\": 3, \"correlation\": 80"),
      event("user_annotation", "Optimizer.step#AdamW.step", first + 300, 100, ""),
      event("cpu_op", "aten::_fused_adamw_", first + 310, 5, "\"External id\": 4"),
      event("kernel", "adam", first + 330, 30, "\"External id\": 4, \"correlation\": 90"),
      event("kernel", "stray", first + 400, 10, "\"correlation\": 99")};
  std::string text = "{\"traceEvents\": [";
  for (const std::string& each : events) text += (each == events.front() ? "" : ",") + each;
  return text + "]}";
}

TEST(Kineto, GivesOperatorsTheirKernels) {
  const KinetoTrace read = read_kineto(trace(), "trace.json");
  EXPECT_EQ(read.orphans, 1U);
  const ImportedProfile profile = imported(read.runs, read.iterations);
  EXPECT_EQ(operators_csv(profile),
            "part,block,operator,shape,type,calls,n,median_ns,min_ns\n"
            "layer,F,gemm,m=6 n=192 k=64,f16,1,1,115500,115500\n"
            "layer,B,gemm,m=6 n=64 k=192,f16,1,1,60000,60000\n"
            "layer,update,adamw,,f32,1,1,30000,30000\n");
  EXPECT_THAT(tasks_csv(profile), HasSubstr("gemm m=6 n=192 k=64,sgemm,0,100000,5000\n"
                                            "gemm m=6 n=192 k=64,splitK,1,10500,0\n"));
}

/// An operator that not every iteration has is no part of one.
TEST(Kineto, CountsCallsThatIterationsDoNotDivide) {
  const KinetoTrace read = read_kineto(trace(), "trace.json");
  for (const ImportedOperator& each : imported(read.runs, 2).operators)
    EXPECT_EQ(each.calls, 1U) << each.operation;
}

/// Stamps of torch.profiler count microseconds from 1970.
TEST(Kineto, TakesStampsSince1970) {
  const KinetoTrace read = read_kineto(trace(1'760'000'000'000'000.0), "trace.json");
  const KinetoTrace plain = read_kineto(trace(), "trace.json");
  EXPECT_EQ(operators_csv(imported(read.runs, 1)), operators_csv(imported(plain.runs, 1)));
  EXPECT_EQ(read.end - read.begin, plain.end - plain.begin);
}

/// Of 40 annotations the first 20 are around their operator.
TEST(Kineto, FindsTheAnnotationAroundAnOperator) {
  std::string text = "[";
  for (int i = 0; i < 40; ++i)
    text += event("user_annotation", i % 2 == 0 ? "embedding" : "head", 100 * i, 50, "") + ',' +
            event("cpu_op", "aten::relu", 100 * i + (i < 20 ? 10 : 60), 5,
                  fmt::format("\"External id\": {}", i)) +
            ',' + event("kernel", "relu", 100 * i + 90, 5, fmt::format("\"External id\": {}", i)) +
            (i < 39 ? "," : "]");
  std::map<std::string, int> parts;
  for (const OperatorRun& run : read_kineto(text, "t.json").runs) ++parts[run.part];
  EXPECT_EQ(parts, (std::map<std::string, int>{{"embedding", 10}, {"head", 10}, {"layer", 20}}));
}

TEST(RequireReadable, RefusesWhatAProfileCannotHold) {
  const auto refused = [](const ImportedOperator& each) {
    try {
      require_readable({{each}, {}}, "t.json");
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    const std::string csv = operators_csv({{each}, {}});
    EXPECT_EQ(scenario::read_profile_table(csv, "o.csv").rows.size(), 1U);
    return std::string{};
  };
  const Duration longest{std::int64_t{1} << 40};
  ImportedOperator each{"layer", "F", "gemm", "m=1 n=1 k=1", "f32", 1, 1 << 14, longest, {}};
  EXPECT_EQ(refused(each), "");
  ++each.calls;
  EXPECT_THAT(refused(each), HasSubstr("16385 times an iteration"));
  each.calls = 1;
  ++each.median;
  EXPECT_THAT(refused(each), HasSubstr("is the limit of a profile"));
}

TEST(Kineto, KnowsProductsByTheirInputs) {
  EXPECT_EQ(product_shape("aten::addmm", {{8}, {4, 6}, {6, 8}}), "m=4 n=8 k=6");
  EXPECT_EQ(product_shape("aten::bmm", {{5, 4, 6}, {5, 6, 8}}), "batch=5 m=4 n=8 k=6");
  EXPECT_EQ(product_shape("aten::mm", {{4, 6}}), std::nullopt);
  EXPECT_EQ(product_shape("aten::relu", {{4, 6}, {6, 8}}), std::nullopt);
}

TEST(Kineto, RefusesWhatIsNone) {
  for (const auto& [text, why] :
       {std::pair{"{", "this is no JSON"},
        {"{\"a\": 1}", "there is no list \"traceEvents\""},
        {"[]", "no kernel in it belongs"},
        {"[{\"cat\": \"cpu_op\", \"ts\": -1}]", "an event has ts = -1"},
        {"[{\"cat\": \"cpu_op\", \"ts\": \"abc\"}]", "an event has ts = 'abc'"},
        {"[{\"cat\": \"cpu_op\", \"ts\": \"1x\"}]", "an event has ts = '1x'"},
        {"[{\"cat\": \"cpu_op\", \"ts\": 1e16}]", "an event has ts = 1e+16"},
        {"[{\"cat\": \"cpu_op\", \"ts\": 1, \"dur\": 1e15}]", "an event has dur"}}) {
    try {
      (void)read_kineto(text, "t.json");
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }
}

TEST(Explanation, SaysWhatIsMissingAndWhatIsSlower) {
  const KinetoTrace read = read_kineto(trace(), "trace.json");
  const scenario::ProfileTable table = scenario::read_profile_table(
      "part,block,operator,shape,type,calls,median_ns\n"
      "layer,F,gemm,m=6 n=192 k=64 nt,f16,1,50000\n"
      "layer,D,gemm,m=6 n=64 k=192 nn,f16,1,61000\n"
      "layer,F,swiglu,rows=6 width=96,f16,1,7000\n",
      "p.csv");
  const Explanation explanation = explained(read,
                                            {{"layer", "F", "gemm", "m=6 n=192 k=64 nt", "f16", 1},
                                             {"layer", "D", "gemm", "m=6 n=64 k=192 nn", "f16", 1},
                                             {"layer", "F", "swiglu", "rows=6 width=96", "f16", 1}},
                                            &table);
  std::map<std::string, ExplanationStatus> found;
  for (const ExplainedOperator& each : explanation.operators)
    found[each.block + ' ' + each.operation] = each.status;
  EXPECT_EQ(found.at("F gemm"), ExplanationStatus::slower);
  EXPECT_EQ(found.at("B gemm"), ExplanationStatus::as_predicted);
  EXPECT_EQ(found.at("F swiglu"), ExplanationStatus::missing);
  EXPECT_EQ(found.at("update adamw"), ExplanationStatus::unpredicted);
  EXPECT_EQ(explanation.span, Duration{390'000});
  EXPECT_EQ(explanation.busy, Duration{100'000 + 10'500 + 60'000 + 30'000});
  EXPECT_EQ(explanation.longest_wait, Duration{230'000 - 135'500});
}

// Two calls of 50 us in layers, one of 80 in the head: 60 us a call.
TEST(Explanation, PredictsTheMeanOfAllCalls) {
  const scenario::ProfileTable table = scenario::read_profile_table(
      "part,block,operator,shape,type,calls,median_ns\n"
      "layer,F,gemm,m=6 n=192 k=64 nt,f16,2,50000\n"
      "head,F,gemm,m=6 n=192 k=64 nt,f16,1,80000\n",
      "p.csv");
  const Explanation explanation = explained({},
                                            {{"layer", "F", "gemm", "m=6 n=192 k=64 nt", "f16", 2},
                                             {"head", "F", "gemm", "m=6 n=192 k=64 nt", "f16", 1}},
                                            &table);
  ASSERT_EQ(explanation.operators.size(), 1U);
  EXPECT_EQ(explanation.operators.front().calls, 3);
  EXPECT_EQ(explanation.operators.front().predicted, 60us);
}

}  // namespace
}  // namespace longhaul::profile
