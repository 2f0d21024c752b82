# The library for simulations: the same objects, in which the names of system calls are replaced by
# those of src/sim (src/sim/syscalls/calls.txt). Nothing is compiled twice, and the real library
# does not depend on it.

set(SPATE_SIMULATED_CALLS ${PROJECT_SOURCE_DIR}/src/sim/syscalls/calls.txt)
find_program(SPATE_OBJCOPY NAMES objcopy llvm-objcopy)
include(CheckSymbolExists)
check_symbol_exists(__GLIBC__ features.h SPATE_HAS_GLIBC)

# Checks whether the flags make the compiler write bytecode in place of machine code.
function(spate_leaves_bytecode result)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  set(flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  set(${result} OFF PARENT_SCOPE)
  if(CMAKE_INTERPROCEDURAL_OPTIMIZATION OR
     (flags MATCHES "-flto" AND NOT flags MATCHES "-ffat-lto-objects|-fno-lto"))
    set(${result} ON PARENT_SCOPE)
  endif()
endfunction()

# spate_add_simulated_library(<name> OBJECTS <target>...): the archive <name>, of the objects of the
# targets and of src/sim, if objcopy is there. The caller adds the libraries that the rooms need.
function(spate_add_simulated_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OBJECTS")
  if(NOT SPATE_OBJCOPY)
    message(STATUS "spate: no objcopy (binutils), so ${name} is not built")
    return()
  endif()
  if(NOT SPATE_HAS_GLIBC OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8)  # calls.txt has the names of these.
    message(STATUS "spate: ${name} needs glibc and 64 bits, so it is not built")
    return()
  endif()
  spate_leaves_bytecode(is_bytecode)
  if(is_bytecode)
    message(STATUS "spate: link-time optimization hides the names of system calls, "
                   "so ${name} is not built")
    return()
  endif()
  if(NOT TARGET spate_sim_objects)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/sim/*.cc)
    add_library(spate_sim_objects OBJECT EXCLUDE_FROM_ALL ${sources})
    spate_configure(spate_sim_objects)
    spate_compile_by_folder(spate_sim_objects)
    set_target_properties(spate_sim_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  set(archive ${CMAKE_CURRENT_BINARY_DIR}/lib${name}.a)
  set(calls ${SPATE_SIMULATED_CALLS})
  list(TRANSFORM arg_OBJECTS REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  set(own $<TARGET_OBJECTS:spate_sim_objects>)
  add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} qc ${archive} ${objects}
    COMMAND ${SPATE_OBJCOPY} --redefine-syms=${calls} ${archive}
    COMMAND ${CMAKE_AR} qs ${archive} ${own}
    DEPENDS ${objects} ${own} ${calls} COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Putting the simulated kernel into lib${name}.a")
  add_custom_target(${name}_archive DEPENDS ${archive})
  # With make, a target has only its own rules, so the objects must be built before.
  add_dependencies(${name}_archive spate_sim_objects ${arg_OBJECTS})
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_archive)
  set(installed $<INSTALL_PREFIX>)
  cmake_path(APPEND installed ${CMAKE_INSTALL_LIBDIR} lib${name}.a)  # It may be absolute.
  target_link_libraries(${name} INTERFACE
    $<BUILD_INTERFACE:${archive}> $<INSTALL_INTERFACE:${installed}>
    Threads::Threads c-ares::cares)
  target_compile_features(${name} INTERFACE cxx_std_23)
  if(SPATE_HARDENED)
    target_compile_definitions(${name} INTERFACE SPATE_HARDENED=1)
  endif()
  target_include_directories(${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${name} PROPERTIES SPATE_ARCHIVE ${archive})
endfunction()

# spate_refuse_own_calls(<executable>): fails if its own objects have inline functions of src/sys.
# The linker could take these for the library's, whose calls go to the simulated kernel.
function(spate_refuse_own_calls name)
  set(found "A test in a World has inline functions of src/sys. Use the system's calls instead.")
  set(check [[! "$nm" "$@" | grep " [WV] _ZNK*5spate3sys" || ! echo "$found"]])
  add_custom_command(TARGET ${name} PRE_LINK
    COMMAND ${CMAKE_COMMAND} -E env nm=${CMAKE_NM} "found=${found}"
            sh -c "${check}" sh $<TARGET_OBJECTS:${name}>
    COMMAND_EXPAND_LISTS VERBATIM)
endfunction()

# spate_replace_calls(<executable>): replaces the names of system calls in its own objects. Needed
# where its sources include src/: inline functions of src/sys, copied into them, would bypass the
# simulated kernel, and the linker may take such a copy for the library's calls as well.
function(spate_replace_calls name)
  set(each [[printf '%s\0' "$@" | xargs -0 -n 1 "$objcopy" -p --redefine-syms="$calls"]])
  add_custom_command(TARGET ${name} PRE_LINK
    COMMAND ${CMAKE_COMMAND} -E env objcopy=${SPATE_OBJCOPY} calls=${SPATE_SIMULATED_CALLS}
            sh -c "${each}" sh $<TARGET_OBJECTS:${name}>
    COMMAND_EXPAND_LISTS VERBATIM)
endfunction()
