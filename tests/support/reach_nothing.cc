// For programs that do not link reach.cc. This file is compiled without the option that calls it.
extern "C" void __sanitizer_cov_trace_pc();
[[gnu::weak]] void __sanitizer_cov_trace_pc() {}
