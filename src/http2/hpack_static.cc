#include "http2/hpack_static.h"

namespace spate::http {

namespace {

constexpr std::size_t kSlots = 128;

constexpr std::size_t slot_of(std::uint32_t hash) { return hash & (kSlots - 1); }

// Open addressing.
consteval std::array<std::uint8_t, kSlots> make_slots() {
  std::array<std::uint8_t, kSlots> slots{};
  for (std::size_t i = 0; i < kHpackStatic.size(); ++i) {
    const std::string_view name = kHpackStatic[i].name;
    if (i > 0 && kHpackStatic[i - 1].name == name) continue;
    std::size_t slot = slot_of(hpack_hash(name));
    while (slots[slot] != 0) slot = slot_of(static_cast<std::uint32_t>(slot) + 1);
    slots[slot] = static_cast<std::uint8_t>(i + 1);
  }
  return slots;
}
constexpr std::array<std::uint8_t, kSlots> kNames = make_slots();

// The number of fields with a value from each index on that have the same name.
consteval std::array<std::uint8_t, kHpackStatic.size()> make_runs() {
  std::array<std::uint8_t, kHpackStatic.size()> runs{};
  for (std::size_t i = kHpackStatic.size(); i-- > 0;) {
    if (kHpackStatic[i].value.empty()) continue;
    const bool goes_on = i + 1 < runs.size() && kHpackStatic[i + 1].name == kHpackStatic[i].name;
    runs[i] = static_cast<std::uint8_t>(1 + (goes_on ? runs[i + 1] : 0));
  }
  return runs;
}
constexpr std::array<std::uint8_t, kHpackStatic.size()> kRuns = make_runs();

consteval std::array<FieldKind, kHpackStatic.size()> make_kinds() {
  std::array<FieldKind, kHpackStatic.size()> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = field_kind_of(kHpackStatic[i].name);
  return kinds;
}
constexpr std::array<FieldKind, kHpackStatic.size()> kKinds = make_kinds();

}  // namespace

std::uint8_t hpack_static_name(std::string_view name, std::uint32_t hash) {
  std::size_t slot = slot_of(hash);
  while (kNames[slot] != 0 && kHpackStatic[kNames[slot] - 1u].name != name)
    slot = slot_of(static_cast<std::uint32_t>(slot) + 1);
  return kNames[slot];
}

std::uint8_t hpack_static_field(std::uint8_t index, std::string_view value) {
  const int end = index + kRuns[index - 1u];
  for (int i = index; i < end; ++i)
    if (kHpackStatic[static_cast<std::size_t>(i - 1)].value == value)
      return static_cast<std::uint8_t>(i);
  return 0;
}

FieldTrait hpack_static_trait(std::size_t index) { return {.kind = kKinds[index - 1]}; }

}  // namespace spate::http
