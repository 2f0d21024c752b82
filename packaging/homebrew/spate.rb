class Spate < Formula
  desc "Event loop and networking library for C++23 and C"
  homepage "SOURCE_URL"
  url "SOURCE_URL/archive/v0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "c-ares"
  depends_on :linux
  depends_on "openssl@3"
  depends_on "zlib"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DBUILD_SHARED_LIBS=ON",
                    "-DSPATE_TESTS=OFF", "-DSPATE_BENCH=OFF", "-DSPATE_EXAMPLES=OFF",
                    "-DSPATE_COMPAT=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/spate-httpd --version")
  end
end
