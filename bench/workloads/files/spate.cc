// spate: File. It reads into the Buffer of the last read, or, with --fresh 1, into new memory. It
// writes a reference to the block.
#include <spate/file.h>

#include "files.h"
#include "harness/spate_loop.h"

namespace {

struct Contestant {
  std::unique_ptr<spate::Loop> loop;
  spate::File file;
  spate::FileOperation operation;
  spate::Buffer bytes;
  bool is_fresh = false;
};
Contestant* contestant;

void on_read(spate::Result<spate::Buffer> bytes) {
  files_stop_clock();
  if (!bytes || bytes->size() != files_size) files_fail("the read");
  for (const spate::Bytes piece : bytes->pieces()) files_take(piece.data(), piece.size());
  contestant->bytes = *std::move(bytes);
  files_end();
}

void on_written(std::error_code error) {
  files_stop_clock();
  if (error) files_fail("the write");
  files_end();
}

}  // namespace

static void files_open(int argc, char** argv) {
  contestant = new Contestant;
  contestant->loop = bench_loop(argc, argv);
  contestant->file = spate::File::adopt(*contestant->loop, ::dup(files_fd));
  contestant->is_fresh = bench_number(argc, argv, "fresh", 0) != 0;
}

static void files_start() {
  Contestant& c = *contestant;
  if (files_writes) {
    spate::Buffer bytes;
    if (!bytes.append_reference(
            spate::Bytes(reinterpret_cast<std::byte*>(files_block), files_size), [](void*) {},
            nullptr))
      files_fail("an allocation");
    c.operation = c.file.write_at(files_offset, std::move(bytes), on_written);
  } else if (c.is_fresh) {
    c.bytes.clear();
    c.operation = c.file.read_at(files_offset, files_size, on_read);
  } else {
    c.operation = c.file.read_at(files_offset, files_size, std::move(c.bytes), on_read);
  }
}

static void files_run() {
  contestant->loop->run();
  delete contestant;
}

static void files_version() { bench_version("0.1.0", nullptr); }
