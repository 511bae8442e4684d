# How tests come to ctest.

# longhaul_discover_tests(target prefix LABELS label... TIMEOUT seconds [FILTER filter]
#                         [SERIAL] [PROCESSORS count]): each test of a GoogleTest program under its
# own name. SERIAL: it judges how long things take, and has the machine for itself.
#
# Under the sanitizers a process costs more than most tests: there a program runs its tests in four
# shards, in one process each.
function(longhaul_discover_tests target prefix)
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT;FILTER;PROCESSORS" "LABELS" ${ARGN})
  set(properties LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  if(ARG_SERIAL)
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  if(ARG_PROCESSORS)
    list(APPEND properties PROCESSORS ${ARG_PROCESSORS})
  endif()
  if(LONGHAUL_SANITIZE STREQUAL "address" AND "${ARG_LABELS}" STREQUAL "pure")
    longhaul_shard_tests(${target} ${prefix} "${ARG_FILTER}")
    return()
  endif()
  if(ARG_FILTER)
    set(filter TEST_FILTER "${ARG_FILTER}")
  endif()
  gtest_discover_tests(${target} TEST_PREFIX "${prefix}." DISCOVERY_TIMEOUT 60 ${filter}
                       PROPERTIES ${properties})
endfunction()

function(longhaul_shard_tests target prefix filter)
  set(shards 4)
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    set(name ${prefix}.${target}.shard-${shard})
    if(filter)
      set(filter_option "--gtest_filter=${filter}")
    endif()
    add_test(NAME ${name} COMMAND ${target} --gtest_brief=1 ${filter_option})
    set_tests_properties(${name} PROPERTIES LABELS pure TIMEOUT 900
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
