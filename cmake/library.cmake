# The sources of the libraries, and their compiler options. Used for the libraries proper and for
# spate_testing, all of their sources with the fault seam of src/sys.

include(${CMAKE_CURRENT_LIST_DIR}/cares.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/inspector_page.cmake)
if(NOT TARGET c-ares::cares)
  message(FATAL_ERROR "c-ares, with which spate looks names up, was not found (ares.h, libcares). "
                      "Run `tools/setup test`, or install libc-ares-dev; if it is elsewhere, say "
                      "where: -DCMAKE_PREFIX_PATH=<prefix>.")
endif()

# The directories of src/ that are separate libraries, and the packages that they need.
set(SPATE_ROOMS http http2 tls)
find_package(ZLIB QUIET)
set(SPATE_NEEDS_http ZLIB::ZLIB)
set(SPATE_PACKAGE_http "zlib (zlib1g-dev)")
find_package(OpenSSL 3.0 QUIET)
set(SPATE_NEEDS_tls OpenSSL::SSL)
set(SPATE_PACKAGE_tls "OpenSSL 3 (libssl-dev)")

# Checks whether the dependencies of a room are installed.
function(spate_has_room room result)
  set(${result} ON PARENT_SCOPE)
  if(room STREQUAL "http2" AND NOT TARGET spate_http_objects)
    message(STATUS "spate: no spate::http, so spate::http2 is not built")
    set(${result} OFF PARENT_SCOPE)
  endif()
  foreach(package IN LISTS SPATE_NEEDS_${room})
    if(NOT TARGET ${package})
      message(STATUS "spate: no ${SPATE_PACKAGE_${room}}, so spate::${room} is not built")
      set(${result} OFF PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Where src/sys and src/backend differ between systems: the directory of src/sys with this system's
# headers and sources, and the sources of other systems.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(SPATE_SYSTEM linux)
  set(SPATE_FOREIGN_SOURCES "/src/sys/bsd/")
else()
  set(SPATE_SYSTEM bsd)
  set(SPATE_FOREIGN_SOURCES "/src/(sys|net)/linux/|/src/backend/(epoll|io_uring)\\.cc$")
endif()

# The sources of one library, "spate" or a room, without tests and their helpers.
function(spate_sources_of library result)
  if(library STREQUAL "spate")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cc)
    list(JOIN SPATE_ROOMS "|" rooms)
    list(FILTER sources EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/src/(${rooms}|sim)/")
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${library}/*.cc)
  endif()
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/src/(.*/)?testing/")
  list(FILTER sources EXCLUDE REGEX "${SPATE_FOREIGN_SOURCES}")
  if(library STREQUAL "http")
    spate_inspector_page(page)
    list(APPEND sources ${page})
  endif()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# spate_add_library(<name>): spate, or a room: each source compiled once, as position independent
# code, and put into a static and a shared library. spate::<name> is one of the two.
function(spate_add_library name)
  set(library ${name})
  if(NOT name STREQUAL "spate")
    set(library spate_${name})
    spate_has_room(${name} is_possible)
    if(NOT is_possible)
      return()
    endif()
  endif()
  spate_sources_of(${name} sources)
  add_library(${library}_objects OBJECT ${sources})
  spate_configure(${library}_objects)
  target_link_libraries(${library}_objects PRIVATE ${SPATE_NEEDS_${name}})
  set_target_properties(${library}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
  spate_compile_by_folder(${library}_objects)
  add_library(${library}_static STATIC $<TARGET_OBJECTS:${library}_objects>)
  add_library(${library}_shared SHARED $<TARGET_OBJECTS:${library}_objects>)
  foreach(kind static shared)
    set(target ${library}_${kind})
    spate_interface(${target})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${library} LINKER_LANGUAGE CXX)
    if(NOT name STREQUAL "spate")
      target_link_libraries(${target} PUBLIC spate_${kind} PRIVATE ${SPATE_NEEDS_${name}})
    endif()
    add_library(spate::${target} ALIAS ${target})
  endforeach()
  set_target_properties(${library}_shared PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${SPATE_SOVERSION})
  if(BUILD_SHARED_LIBS)
    add_library(spate::${name} ALIAS ${library}_shared)
  else()
    add_library(spate::${name} ALIAS ${library}_static)
  endif()
  set(map ${PROJECT_SOURCE_DIR}/src/c/exports.map)  # The functions of C have a version.
  if(NOT APPLE)
    target_link_options(${library}_shared PRIVATE -Wl,--version-script=${map})
  endif()
  set_target_properties(${library}_shared PROPERTIES LINK_DEPENDS ${map})
  set(SPATE_LIBRARIES ${SPATE_LIBRARIES} ${library} PARENT_SCOPE)
endfunction()

# Usage requirements: sets what a user of the library needs to compile and link.
function(spate_interface target)
  target_compile_features(${target} PUBLIC cxx_std_23)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(SPATE_HARDENED)
    target_compile_definitions(${target} PUBLIC SPATE_HARDENED=1)
  endif()
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  target_link_libraries(${target} PUBLIC Threads::Threads PRIVATE c-ares::cares)
  # 1.34 deprecates ares_set_socket_functions() in favour of a function that 1.18 does not have. It
  # keeps the old one, so that one is used with all versions.
  target_compile_definitions(${target} PRIVATE CARES_NO_DEPRECATED)
  if(CMAKE_SIZEOF_VOID_P EQUAL 4)  # No public header has a time or an offset of the system.
    target_compile_definitions(${target} PRIVATE _FILE_OFFSET_BITS=64 _TIME_BITS=64)
  endif()
endfunction()

# Lets a target include the headers of src/ that this system has.
function(spate_internal_headers target)
  # -iquote and not -I: src/sys/ must never be found for the C library's <sys/...>.
  target_compile_options(${target} PRIVATE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/src"
    "SHELL:-iquote ${PROJECT_SOURCE_DIR}/src/sys/${SPATE_SYSTEM}")
  if(APPLE)  # Its headers have IPv6's control messages only then.
    target_compile_definitions(${target} PRIVATE __APPLE_USE_RFC_3542)
  endif()
endfunction()

# How spate's own code, library or test, is compiled.
function(spate_own_code target)
  spate_warnings(${target})
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions> $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
  spate_internal_headers(${target})
  target_compile_options(${target} PRIVATE "SHELL:-iquote ${PROJECT_SOURCE_DIR}")
endfunction()

# A target that compiles a library's sources.
function(spate_configure target)
  spate_interface(${target})
  spate_own_code(${target})
  # src/core/user_code.h ends the program when a callback throws: for that alone.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fexceptions>)
  target_compile_options(${target} PRIVATE
    -fvisibility=hidden -fvisibility-inlines-hidden
    $<$<NOT:$<PLATFORM_ID:Darwin>>:-fno-plt>)
  # So that a program linked with --gc-sections has only the functions that it uses.
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # A base class's own function is hardly ever called.
    target_compile_options(${target} PRIVATE
      -fno-semantic-interposition -fno-devirtualize-speculatively)
  endif()
  # A user's UBSan checks the dynamic type of each polymorphic object on which the user's code makes
  # a virtual call, so it needs the RTTI of these classes: error categories, which std::error_code
  # calls from inline code, services of HTTP, and the interfaces of coroutines. Objects that these
  # sources call may have no RTTI, so -fno-sanitize=vptr keeps the check off inside them.
  set(sources src/core/error src/net/dns/name_error src/http/codec/http_error
      src/http/server/files src/http/server/hosts src/http/server/router
      src/http/middleware/added_fields src/http/middleware/authentication
      src/http/middleware/concurrency_limit src/http/middleware/cors src/http/middleware/limits
      src/http/middleware/rate_limit src/http/middleware/request_id src/coro/stream
      src/coro/connection_adapter src/coro/datagram src/http/coro/call src/http/coro/exchange
      src/http/coro/websocket)
  list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/)
  list(TRANSFORM sources APPEND .cc)
  foreach(source IN LISTS sources)  # set_source_files_properties() ignores files that do not exist.
    if(NOT EXISTS ${source})
      message(FATAL_ERROR "${source} was renamed or removed: correct this list")
    endif()
  endforeach()
  set_source_files_properties(${sources}
    TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS "-frtti;-fno-sanitize=vptr")
endfunction()

# The sources of a folder as one: a quarter of the time, as each header is read once a folder, and
# functions are inlined across them. Other builds show whether each can be compiled by itself.
# With -DCMAKE_UNITY_BUILD=OFF each source is compiled separately, which Meson needs.
function(spate_compile_by_folder target)
  if(DEFINED CMAKE_UNITY_BUILD AND NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(${target} PRIVATE  # Only of a header would it be true.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER ${folder} group)
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES
      UNITY_GROUP ${group})
  endforeach()
endfunction()
