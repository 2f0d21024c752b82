{ lib, stdenv, cmake, ninja, c-ares, zlib, openssl }:

stdenv.mkDerivation {
  pname = "spate";
  version = "0.1.0";
  src = lib.cleanSource ../..;

  nativeBuildInputs = [ cmake ninja ];
  propagatedBuildInputs = [ c-ares zlib openssl ];
  cmakeFlags = [
    "-DBUILD_SHARED_LIBS=ON"
    "-DSPATE_TESTS=OFF"
    "-DSPATE_BENCH=OFF"
    "-DSPATE_EXAMPLES=OFF"
    "-DSPATE_COMPAT=OFF"
  ];

  meta = {
    description = "Event loop and networking library for C++23 and C";
    license = lib.licenses.mit;
    platforms = lib.platforms.linux;
  };
}
