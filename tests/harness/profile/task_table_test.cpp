// Activity records become the rows of tasks.csv.
#include "harness/profile/task_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/records/profile_record.hpp"
#include "scenario/files/profile_table.hpp"

namespace longhaul::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kNorm = "_ZN8longhaul2nn12_GLOBAL__N_113rms_norm_rowsIfEEvPKT_PS3_ii";
constexpr const char* kProduct = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_NNT";

OperatorTimes operator_of(const char* block, const char* operation, const char* shape,
                          std::vector<std::uint64_t> ranges, double median_ns = 0) {
  OperatorTimes times{"layer", block, {operation, shape, NumberType::bf16, 0, 0, {}}, 1, {}};
  times.samples = {median_ns};
  times.ranges = std::move(ranges);
  return times;
}

/// Adds a task that the launch number `launch` of `range` began; `range` 0: of none.
void add_task(cuda::ActivityRecords& records, std::uint64_t range, const char* name,
              std::int64_t start, std::int64_t length) {
  const auto launch = static_cast<std::uint32_t>(records.tasks.size() + 100);
  records.tasks.push_back({launch, name, start, start + length});
  if (range != 0) records.launches.push_back({launch, range});
}

/// Three samples of a product of two tasks (a fill, the kernel), two of a norm.
cuda::ActivityRecords known_records() {
  cuda::ActivityRecords records;
  add_task(records, 1, "memset", 1000, 10);
  add_task(records, 1, kProduct, 1015, 200);
  add_task(records, 2, "memset", 2000, 12);
  add_task(records, 2, kProduct, 2019, 220);
  add_task(records, 3, "memset", 3000, 30);
  add_task(records, 3, kProduct, 3031, 300);
  add_task(records, 4, kNorm, 4000, 40);
  add_task(records, 5, kNorm, 5000, 44);
  add_task(records, 0, "memcpy HtoD", 5500, 9);  // of no operator
  return records;
}

std::vector<OperatorTimes> known_operators() {
  return {operator_of("F", "gemm", "m=3 n=4 k=5 nt", {1, 2, 3}, 240),
          operator_of("F", "rms_norm", "rows=3 width=4", {4, 5}, 50)};
}

const std::string kRows =
    "operator,kernel,position,median_ns,gap_ns\n"
    "gemm m=3 n=4 k=5 nt,memset,0,12,5\n"
    "gemm m=3 n=4 k=5 nt,nvjet_tst_192x192_64x4_2x1_v_bz_coopB_NNT,1,220,0\n"
    "rms_norm rows=3 width=4,\"void longhaul::nn::(anonymous namespace)::rms_norm_rows<float>"
    "(float const*, float*, int, int)\",0,42,0\n";

TEST(TaskTable, HasTheMediansOfEachPositionAndOfTheGapsBetween) {
  const TaskProfile profile = task_profile(known_operators(), known_records());
  EXPECT_EQ(tasks_csv(profile), kRows);
  EXPECT_THAT(task_notes(profile), IsEmpty());
}

TEST(TaskTable, NeedsNoOrderOfRecords) {
  cuda::ActivityRecords records = known_records();
  std::ranges::reverse(records.tasks);
  std::ranges::rotate(records.launches, records.launches.begin() + 3);
  EXPECT_EQ(tasks_csv(task_profile(known_operators(), records)), kRows);
}

TEST(TaskTable, IsReadByCosts) {
  const scenario::TaskTable table =
      scenario::read_task_table(tasks_csv(task_profile(known_operators(), known_records())), "t");
  const auto product = table.of("gemm", "m=3 n=4 k=5 nt");
  ASSERT_EQ(product.size(), 2U);
  EXPECT_EQ(product[0].gap, Duration{5});
  EXPECT_EQ(product[1].median, Duration{220});
  const auto norm = table.of("rms_norm", "rows=3 width=4");
  ASSERT_EQ(norm.size(), 1U);
  EXPECT_EQ(norm[0].kernel,
            "void longhaul::nn::(anonymous namespace)::rms_norm_rows<float>"
            "(float const*, float*, int, int)");
}

TEST(TaskTable, TellsTheBlocksOfAnOperatorTogether) {
  std::vector<OperatorTimes> operators = known_operators();
  operators.push_back(operator_of("R", "rms_norm", "rows=3 width=4", {6}, 60));
  cuda::ActivityRecords records = known_records();
  add_task(records, 6, kNorm, 6000, 60);
  const TaskProfile profile = task_profile(operators, records);
  EXPECT_THAT(tasks_csv(profile), HasSubstr(",0,44,0\n"));  // of 40, 44, 60
  ASSERT_EQ(profile.traced.size(), 3U);
  EXPECT_EQ(profile.traced[2].sum_ns(), 60);
}

TEST(TaskTable, LeavesOutAndNamesSamplesWithAnotherNumberOfTasks) {
  cuda::ActivityRecords records = known_records();
  add_task(records, 3, "memset", 3400, 1000);
  const TaskProfile profile = task_profile(known_operators(), records);
  EXPECT_THAT(tasks_csv(profile), HasSubstr("nt,memset,0,11,6\n"));  // of 10, 12 and 5, 7
  EXPECT_THAT(task_notes(profile),
              ElementsAre("gemm m=3 n=4 k=5 nt: 1 of 3 samples ran other tasks (3 tasks instead of "
                          "2) and are left out"));
}

TEST(TaskTable, LeavesOutAndNamesSamplesWithOtherKernels) {
  cuda::ActivityRecords records = known_records();
  records.tasks[5].name = "nvjet_other";
  EXPECT_THAT(task_notes(task_profile(known_operators(), records)),
              ElementsAre(HasSubstr("1 of 3 samples ran other tasks (other kernels)")));
}

TEST(TaskTable, CountsWhatWasLost) {
  cuda::ActivityRecords records = known_records();
  records.tasks[1].start_ns = records.tasks[1].end_ns = 0;  // the GPU had no room for its times
  records.tasks.erase(records.tasks.begin() + 6,
                      records.tasks.begin() + 8);  // the norm's: a buffer
  records.dropped = 2;
  records.unread_buffers = 1;
  const TaskProfile profile = task_profile(known_operators(), records);
  EXPECT_THAT(task_notes(profile),
              ElementsAre("CUPTI dropped 2 records, 1 of its buffers could not be read, it has no "
                          "times of 1 tasks",
                          HasSubstr("nt: 1 of 3 samples ran other tasks (1 task instead of 2)"),
                          "rms_norm rows=3 width=4: no task was recorded"));
  EXPECT_THAT(tasks_csv(profile), HasSubstr("nt,memset,0,21,4\n"));  // of 12, 30 and 7, 1
}

TEST(TaskTable, TasksThatOverlapHaveNoGap) {
  cuda::ActivityRecords records;
  add_task(records, 1, "long", 0 + 10, 100);
  add_task(records, 1, "short", 20, 5);
  add_task(records, 1, "last", 130, 5);
  const TaskProfile profile = task_profile({operator_of("F", "copy", "count=1", {1})}, records);
  EXPECT_THAT(tasks_csv(profile),
              HasSubstr("long,0,100,0\ncopy count=1,short,1,5,20\ncopy count=1,last,2,5,0\n"));
}

TEST(TaskSums, CompareEachOperatorWithItsOwnTime) {
  const std::vector<OperatorTimes> timed = known_operators();
  TaskProfile profile = task_profile(known_operators(), known_records());
  profile.host_ns = 7;
  const std::vector<TaskSum> sums = task_sums(timed, profile);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].sum_ns, 12 + 5 + 220);
  EXPECT_NEAR(sums[0].difference(), 237.0 / 240 - 1, 1e-12);
  EXPECT_NEAR(sums[1].difference(7), 49.0 / 50 - 1, 1e-12);

  ModelProfile whole;
  whole.operators = timed;
  whole.tasks = profile;
  EXPECT_EQ(
      tasks_text(whole),
      "tasks with their gaps are within 3% of their operators in 1 of 2 (farthest: rms_norm "
      "rows=3 width=4 of layer, F, -16.0%); with the 0.0 us that the host takes to begin one "
      "and to see its end in 2 of 2 (farthest: rms_norm rows=3 width=4 of layer, F, -2.0%)\n");
  const auto record = tasks_json(whole);
  EXPECT_EQ(record["alone"]["within_3_percent"], 1);
  EXPECT_EQ(record["with_host"]["within_3_percent"], 2);
  EXPECT_EQ(record["operators"], 2);
  EXPECT_EQ(record["sums"][1]["kernels"][0], "rms_norm_rows");
}

TEST(KernelNames, AreShortened) {
  EXPECT_EQ(short_kernel_name("void longhaul::nn::(anonymous namespace)::rms_norm_rows<float, "
                              "(int)4>(float const*, void (*)(int))"),
            "rms_norm_rows");
  EXPECT_EQ(short_kernel_name("void a::scan<std::pair<int, b<2> > >(int) [clone .x]"), "scan");
  EXPECT_EQ(short_kernel_name(kProduct), kProduct);
  EXPECT_EQ(short_kernel_name("memcpy DtoD"), "memcpy DtoD");
  EXPECT_EQ(short_kernel_name("main()"), "main");
  EXPECT_EQ(short_kernel_name(""), "");
}

}  // namespace
}  // namespace longhaul::harness
