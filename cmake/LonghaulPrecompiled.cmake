# Most of a compiler's time goes into headers of libraries: these are parsed once for each kind of
# file and shared by all targets of that kind. Only headers of the standard library and of others'
# libraries belong here: a header of ours would be seen where no #include names it. Files still
# include what they use; the presets dev and cuda build without, and .ci/check_headers too.
option(LONGHAUL_PRECOMPILED "Parse the headers of libraries once for many files (g++ alone)" ON)

# longhaul_precompiled_kind(kind LINK lib... HEADERS header...)
function(longhaul_precompiled_kind kind)
  cmake_parse_arguments(ARG "" "" "LINK;HEADERS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/precompiled/${kind}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(longhaul_precompiled_${kind} OBJECT ${source})
  target_link_libraries(longhaul_precompiled_${kind} PRIVATE longhaul_flags ${ARG_LINK})
  # ccache preprocesses, and has to see the header named there.
  target_compile_options(longhaul_precompiled_${kind} PRIVATE -fpch-preprocess)
  list(TRANSFORM ARG_HEADERS REPLACE "(.+)" "<\\1>")
  target_precompile_headers(longhaul_precompiled_${kind} PRIVATE ${ARG_HEADERS})
endfunction()

# longhaul_precompiled(target kind): compiles its sources with the headers of that kind.
function(longhaul_precompiled target kind)
  if(TARGET longhaul_precompiled_${kind})
    target_precompile_headers(${target} REUSE_FROM longhaul_precompiled_${kind})
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endfunction()

if(LONGHAUL_PRECOMPILED AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(standard_headers algorithm array cmath cstdint filesystem fstream functional limits map
      memory numeric optional queue set span sstream string string_view tuple unordered_map
      utility vector)
  longhaul_precompiled_kind(plain LINK fmt::fmt
                            HEADERS ${standard_headers} fmt/format.h fmt/ranges.h)
  longhaul_precompiled_kind(json LINK fmt::fmt nlohmann_json::nlohmann_json
                            HEADERS ${standard_headers} fmt/format.h fmt/ranges.h
                                    nlohmann/json.hpp)
  if(LONGHAUL_WITH_TESTS)
    longhaul_precompiled_kind(test LINK fmt::fmt GTest::gtest GTest::gmock
                              HEADERS ${standard_headers} fmt/format.h gtest/gtest.h
                                      gmock/gmock.h)
    longhaul_precompiled_kind(json_test
                              LINK fmt::fmt GTest::gtest GTest::gmock nlohmann_json::nlohmann_json
                              HEADERS ${standard_headers} fmt/format.h gtest/gtest.h
                                      gmock/gmock.h nlohmann/json.hpp)
  endif()
endif()
