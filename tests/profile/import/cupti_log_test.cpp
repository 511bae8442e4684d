#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "profile/import/imported_profile.hpp"

namespace longhaul::profile {
namespace {

using ::testing::HasSubstr;

/// Two kernels of a layer's forward, 100 and 50 ns with 20 between, one of its backward.
const std::string kLog =
    "0,0,TIMESTAMP,\"forward start embeddings\"\n"
    "1,5,RUNTIME,211,7,7,10\n"
    "9,30,KERNEL,\"embed<float, 4>\",0,1,7,1,1,1,32,1,1,10\n"
    "50,0,TIMESTAMP,\"forward end embeddings\"\n"
    "60,0,TIMESTAMP,\"forward start transformer\"\n"
    "61,5,RUNTIME,211,7,7,11\n"
    "67,5,DRIVER,300,7,7,12\n"
    "100,100,KERNEL,\"volta_sgemm_128x64_tn\",0,1,7,1,1,1,32,1,1,11\n"
    "220,50,CONC KERNEL,\"void act<a, b>(int)\",0,1,7,1,1,1,32,1,1,12\n"
    "280,0,TIMESTAMP,\"forward end transformer\"\n"
    "285,5,RUNTIME,211,7,7,13\n"
    "290,9,KERNEL,\"between\",0,1,7,1,1,1,32,1,1,13\n"
    "300,0,TIMESTAMP,\"backward start transformer\"\n"
    "301,5,RUNTIME,211,7,7,14\n"
    "320,200,KERNEL,\"dgrad\",0,1,7,1,1,1,32,1,1,14\n"
    "330,4,MEMCPY,HtoD,0,1,7,14\n"
    "600,0,TIMESTAMP,\"WU start transformer\"\n"
    "601,5,RUNTIME,211,7,7,15\n"
    "620,40,KERNEL,\"adam\",0,1,7,1,1,1,32,1,1,15\n";

TEST(CuptiLog, GivesOperatorsTheirKernels) {
  ASSERT_TRUE(is_cupti_log(kLog));
  const ImportedProfile profile = read_cupti_log(kLog, "trace", "trace_1024_2_8");
  EXPECT_EQ(operators_csv(profile),
            "part,block,operator,shape,type,calls,n,median_ns,min_ns\n"
            "embedding,F,embeddings,hidden=1024 tensor=2 batch=8,f16,1,1,30,30\n"
            "layer,F,transformer,hidden=1024 tensor=2 batch=8,f16,1,1,170,170\n"
            "layer,B,transformer,hidden=1024 tensor=2 batch=8,f16,1,1,200,200\n"
            "layer,update,transformer,hidden=1024 tensor=2 batch=8,f16,1,1,40,40\n");
  EXPECT_THAT(tasks_csv(profile),
              HasSubstr("transformer hidden=1024 tensor=2 batch=8,volta_sgemm_128x64_tn,0,100,20\n"
                        "transformer hidden=1024 tensor=2 batch=8,void act<a; b>(int),1,50,0\n"));
}

std::string refusal_of(const std::string& log) {
  try {
    (void)read_cupti_log(log, "log", "log");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CuptiLog, RefusesWhatIsNone) {
  EXPECT_THAT(refusal_of("0,0,TIMESTAMP\n"), HasSubstr("log:1: there are 3 values"));
  EXPECT_THAT(refusal_of("0,0,TIMESTAMP,\"a\"\n-4,0,KERNEL,\"k\",1\n"),
              HasSubstr("log:2: \"-4\" is no whole number"));
  EXPECT_THAT(refusal_of("0,0,WALK,\"a\"\n"), HasSubstr("log:1: \"WALK\" is no kind of activity"));
  EXPECT_THAT(refusal_of("0,0,TIMESTAMP,\"forward start x\"\n"), HasSubstr("no kernel in it"));
  EXPECT_FALSE(is_cupti_log("{\"traceEvents\": []}"));
}

}  // namespace
}  // namespace longhaul::profile
