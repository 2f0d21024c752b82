# Headers, the libraries, the CMake package, the files of pkg-config, the licence and the manual.
# All paths are relative to the place where the files lie, so that an installed tree may be moved.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
foreach(library IN LISTS SPATE_LIBRARIES)
  install(TARGETS ${library}_static ${library}_shared EXPORT spate_targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_target_properties(${library}_shared PROPERTIES INSTALL_RPATH "$ORIGIN")
endforeach()
if(TARGET spate_sim)  # spate::sim: the archive, and the libraries that its users must link.
  set_target_properties(spate_sim PROPERTIES EXPORT_NAME sim)
  set_target_properties(spate_sim_archive PROPERTIES EXCLUDE_FROM_ALL OFF)
  get_target_property(archive spate_sim SPATE_ARCHIVE)
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS spate_sim EXPORT spate_targets)
endif()

set(spate_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/spate)
install(EXPORT spate_targets NAMESPACE spate:: FILE spateTargets.cmake
        DESTINATION ${spate_package_dir})
# The components that this build has.
set(spate_built sim)
if(NOT TARGET spate_sim)
  set(spate_built "")
endif()
foreach(room IN LISTS SPATE_ROOMS)
  if(TARGET spate_${room}_static)
    list(APPEND spate_built ${room})
  endif()
endforeach()
list(JOIN spate_built "|" spate_built_pattern)
list(JOIN SPATE_ROOMS "|" spate_rooms_pattern)
list(JOIN SPATE_ROOMS ", " spate_rooms_text)
configure_package_config_file(cmake/spateConfig.cmake.in spateConfig.cmake
                              INSTALL_DESTINATION ${spate_package_dir}
                              PATH_VARS CMAKE_INSTALL_BINDIR)
# Before 1.0 a new minor version may break its users.
write_basic_package_version_file(spateConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/spateConfig.cmake ${PROJECT_BINARY_DIR}/spateConfigVersion.cmake
              cmake/cares.cmake cmake/coro_lint.cmake
        DESTINATION ${spate_package_dir})

set(spate_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(spate_pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" up "${up}")
  set(spate_pc_prefix "\${pcfiledir}/${up}")
endif()
cmake_path(APPEND spate_pc_libdir "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND spate_pc_includedir "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
set(spate_pc_cflags "-I\${includedir}")
if(SPATE_HARDENED)
  string(APPEND spate_pc_cflags " -DSPATE_HARDENED=1")
endif()
configure_file(cmake/spate.pc.in spate.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/spate.pc DESTINATION ${spate_pc_dir})
set(spate_pc_needs_sim "")
set(spate_pc_needs_http zlib)
set(spate_pc_needs_http2 "")
set(spate_pc_needs_tls openssl)
foreach(room IN LISTS SPATE_ROOMS)
  if(TARGET spate_${room}_static)
    set(spate_pc_needs ${spate_pc_needs_${room}})
    list(APPEND spate_pc_needs_sim ${spate_pc_needs})
    configure_file(cmake/spate-room.pc.in spate-${room}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/spate-${room}.pc DESTINATION ${spate_pc_dir})
  endif()
endforeach()
if(TARGET spate_sim)
  list(JOIN spate_pc_needs_sim ", " spate_pc_needs_sim)
  configure_file(cmake/spate-sim.pc.in spate-sim.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/spate-sim.pc DESTINATION ${spate_pc_dir})
endif()

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/docs/man/spate.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
