#include "sim/net/steering.h"

#include <optional>
#include <utility>

namespace spate::sim {

namespace {

// Returns the number of bytes that a load reads.
std::size_t width_of(const sock_filter& step) {
  switch (BPF_SIZE(step.code)) {
    case BPF_W:
      return 4;
    case BPF_H:
      return 2;
    default:
      return 1;
  }
}

std::optional<std::uint32_t> load(Bytes packet, std::uint64_t offset, std::size_t width) {
  if (offset + width > packet.size()) return std::nullopt;
  std::uint32_t value = 0;
  for (const std::byte byte : packet.subspan(offset, width))
    value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

std::uint32_t compute(std::uint32_t value, const sock_filter& step) {
  switch (BPF_OP(step.code)) {
    case BPF_ADD:
      return value + step.k;
    case BPF_SUB:
      return value - step.k;
    case BPF_MUL:
      return value * step.k;
    case BPF_DIV:
      return value / step.k;
    case BPF_MOD:
      return value % step.k;
    case BPF_AND:
      return value & step.k;
    case BPF_OR:
      return value | step.k;
    case BPF_XOR:
      return value ^ step.k;
    case BPF_LSH:
      return value << step.k;
    default:
      return value >> step.k;
  }
}

// Returns the number of steps that a jump skips.
std::size_t jump_of(std::uint32_t value, const sock_filter& step) {
  switch (BPF_OP(step.code)) {
    case BPF_JA:
      return step.k;
    case BPF_JEQ:
      return value == step.k ? step.jt : step.jf;
    case BPF_JGT:
      return value > step.k ? step.jt : step.jf;
    case BPF_JGE:
      return value >= step.k ? step.jt : step.jf;
    default:
      return (value & step.k) != 0 ? step.jt : step.jf;
  }
}

}  // namespace

std::shared_ptr<const Steering> Steering::make(const sock_fprog& program) {
  if (program.filter == nullptr || program.len == 0 || program.len > BPF_MAXINSNS) return nullptr;
  std::vector<sock_filter> steps(program.filter, program.filter + program.len);
  std::shared_ptr<const Steering> made(new Steering(std::move(steps)));
  return made->is_valid() ? made : nullptr;
}

// Jumps only lead forward, so a program that ends with a return always returns.
bool Steering::is_valid() const {
  if (BPF_CLASS(steps_.back().code) != BPF_RET) return false;
  for (std::size_t at = 0; at < steps_.size(); ++at) {
    if (!is_valid(at)) return false;
  }
  return true;
}

bool Steering::is_valid(std::size_t at) const {
  const sock_filter& step = steps_[at];
  const std::uint64_t left = steps_.size() - at - 1;
  switch (step.code) {
    case BPF_LD | BPF_W | BPF_ABS:
    case BPF_LD | BPF_H | BPF_ABS:
    case BPF_LD | BPF_B | BPF_ABS:
      return step.k < static_cast<std::uint32_t>(SKF_AD_OFF);
    case BPF_LD | BPF_IMM:
    case BPF_RET | BPF_K:
    case BPF_RET | BPF_A:
    case BPF_ALU | BPF_ADD | BPF_K:
    case BPF_ALU | BPF_SUB | BPF_K:
    case BPF_ALU | BPF_MUL | BPF_K:
    case BPF_ALU | BPF_AND | BPF_K:
    case BPF_ALU | BPF_OR | BPF_K:
    case BPF_ALU | BPF_XOR | BPF_K:
      return true;
    case BPF_ALU | BPF_DIV | BPF_K:
    case BPF_ALU | BPF_MOD | BPF_K:
      return step.k != 0;
    case BPF_ALU | BPF_LSH | BPF_K:
    case BPF_ALU | BPF_RSH | BPF_K:
      return step.k < 32;
    case BPF_JMP | BPF_JA:
      return step.k < left;
    case BPF_JMP | BPF_JEQ | BPF_K:
    case BPF_JMP | BPF_JGT | BPF_K:
    case BPF_JMP | BPF_JGE | BPF_K:
    case BPF_JMP | BPF_JSET | BPF_K:
      return step.jt < left && step.jf < left;
    default:
      return false;
  }
}

std::uint32_t Steering::socket_for(Bytes packet) const {
  std::uint32_t value = 0;
  for (std::size_t at = 0;; ++at) {
    const sock_filter& step = steps_[at];
    switch (BPF_CLASS(step.code)) {
      case BPF_LD: {
        const bool is_constant = BPF_MODE(step.code) == BPF_IMM;
        const auto loaded =
            is_constant ? std::optional(step.k) : load(packet, step.k, width_of(step));
        if (!loaded) return 0;
        value = *loaded;
        break;
      }
      case BPF_ALU:
        value = compute(value, step);
        break;
      case BPF_JMP:
        at += jump_of(value, step);
        break;
      default:
        return BPF_RVAL(step.code) == BPF_A ? value : step.k;
    }
  }
}

}  // namespace spate::sim
