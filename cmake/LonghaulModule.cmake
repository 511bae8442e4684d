# One module = one folder of src/ = one static library. A module sees the headers of the modules it
# links and no others: every library exports an include root that holds a link to its own folder
# alone, so a forbidden #include does not build.

add_library(longhaul_flags INTERFACE)
target_compile_options(longhaul_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(LONGHAUL_WERROR)
  target_compile_options(longhaul_flags INTERFACE -Werror)
endif()
if(LONGHAUL_SANITIZE)
  # -Wmaybe-uninitialized reports false positives inside the standard library under the sanitizers.
  target_compile_options(longhaul_flags INTERFACE -fsanitize=address,undefined
                         -fno-sanitize-recover=undefined -fno-omit-frame-pointer
                         -Wno-maybe-uninitialized)
  target_link_options(longhaul_flags INTERFACE -fsanitize=address,undefined)
endif()

# longhaul_module(name USES module... [PUBLIC lib...] [PRIVATE lib...])
function(longhaul_module name)
  cmake_parse_arguments(ARG "" "" "USES;PUBLIC;PRIVATE" ${ARGN})
  set(include_root ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${include_root})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${name} ${include_root}/${name} SYMBOLIC)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "/cuda/")
  add_library(longhaul_${name} STATIC ${sources})
  target_include_directories(longhaul_${name} PUBLIC ${include_root})
  target_link_libraries(longhaul_${name} PRIVATE longhaul_flags PUBLIC ${ARG_PUBLIC}
                        PRIVATE ${ARG_PRIVATE})
  foreach(used ${ARG_USES})
    target_link_libraries(longhaul_${name} PUBLIC longhaul_${used})
  endforeach()
  if(nlohmann_json::nlohmann_json IN_LIST ARG_PUBLIC)
    longhaul_precompiled(longhaul_${name} json)
  else()
    longhaul_precompiled(longhaul_${name} plain)
  endif()
endfunction()
