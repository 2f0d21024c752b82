vcpkg_from_git(
  OUT_SOURCE_PATH SOURCE_PATH
  URL SOURCE_URL
  REF 0000000000000000000000000000000000000000
)
set(left_out "")
if(NOT "http" IN_LIST FEATURES)
  list(APPEND left_out -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON)
endif()
if(NOT "tls" IN_LIST FEATURES)
  list(APPEND left_out -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON)
endif()
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${left_out} -DSPATE_TESTS=OFF -DSPATE_BENCH=OFF -DSPATE_EXAMPLES=OFF -DSPATE_COMPAT=OFF
          -DSPATE_PROGRAMS=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME spate CONFIG_PATH lib/cmake/spate)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
