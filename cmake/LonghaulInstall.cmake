# cmake --install: programs, the library with its header and CMake package, the Python package, and
# the example scenarios. Everything finds its neighbours relative to itself, so that the prefix can
# be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS longhaul RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(LONGHAUL_WITH_MPI)
  install(TARGETS bench_link bench_pipeline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/benchmarks/scenarios
        DESTINATION ${CMAKE_INSTALL_DATADIR}/longhaul)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/longhaul
        USE_SOURCE_PERMISSIONS OPTIONAL)

if(NOT TARGET longhaul_api)
  return()
endif()
install(TARGETS longhaul_api EXPORT longhaul_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_SOURCE_DIR}/src/api/longhaul.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/longhaul)
install(EXPORT longhaul_targets NAMESPACE longhaul:: FILE longhaulConfig.cmake
        DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/longhaulConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/longhaulConfigVersion.cmake
        DESTINATION ${package_dir})

# Where the interpreter of the prefix looks; another place for packagers.
set(LONGHAUL_PYTHON_DIR "" CACHE STRING "Where the Python package goes, from the prefix on")
if(TARGET longhaul_native)
  set(site ${LONGHAUL_PYTHON_DIR})
  if(NOT site)
    set(site ${CMAKE_INSTALL_LIBDIR}/python${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR})
    set(site ${site}/site-packages)
  endif()
  file(RELATIVE_PATH library_from_site /prefix/${site} /prefix/${CMAKE_INSTALL_LIBDIR})
  set_target_properties(longhaul_native PROPERTIES INSTALL_RPATH "$ORIGIN/${library_from_site}")
  install(TARGETS longhaul_native LIBRARY DESTINATION ${site})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/src/python/longhaul DESTINATION ${site}
          FILES_MATCHING PATTERN "*.py")
endif()
