{ lib, stdenv, cmake, ninja, python3, c-ares, zlib, openssl }:

stdenv.mkDerivation {
  pname = "spate";
  version = "0.1.0";
  src = lib.cleanSource ../..;

  nativeBuildInputs = [ cmake ninja ];
  buildInputs = [ python3 ]; # The interpreter of spate-coro-lint.
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
    mainProgram = "spate-httpd";
    license = lib.licenses.mit;
    platforms = lib.platforms.linux;
  };
}
