// Records of inotify, in any bytes: a record ends after its start and within the bytes. Its name is
// in it and has no zero byte. More bytes do not change it.
#include "sys/inotify.h"
#include "input.h"

namespace spate::fuzz {
namespace {

using sys::InotifyRecord;
using sys::read_record;

void check_prefixes(std::span<const char> bytes, std::size_t offset, const InotifyRecord& whole) {
  InotifyRecord part;
  check(!read_record(bytes.first(whole.end - 1), offset, part));
  check(read_record(bytes.first(whole.end), offset, part));
  check(part.watch == whole.watch && part.mask == whole.mask && part.cookie == whole.cookie);
  check(part.name == whole.name && part.end == whole.end);
}

void parse(std::span<const char> bytes) {
  std::size_t offset = 0;
  InotifyRecord record;
  while (read_record(bytes, offset, record)) {
    check(record.end >= offset + sizeof(inotify_event) && record.end <= bytes.size());
    check(record.name.size() <= record.end - offset - sizeof(inotify_event));
    check(!record.name.contains('\0'));
    check_prefixes(bytes, offset, record);
    offset = record.end;
  }
  check(!read_record(bytes, bytes.size() + 1, record));
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spate::fuzz::parse({reinterpret_cast<const char*>(data), size});
  return 0;
}
