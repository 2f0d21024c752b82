#include "http/server/listing.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <vector>

#include "spate/http/date.h"
#include "spate/http/html.h"
#include "spate/http/url.h"

namespace spate::http {

namespace {

struct Entry {
  std::string name;
  sys::FileStatus status;
};

bool is_directory(const Entry& entry) {
  return entry.status.kind == sys::FileStatus::Kind::directory;
}

// Directories first, each group by name.
std::vector<Entry> entries_of(sys::Directory& directory, Hidden hidden) {
  std::vector<Entry> entries;
  while (entries.size() <= kMostListed) {
    const char* next = directory.next();
    if (next == nullptr) break;
    const std::string_view name = next;
    if (name == "." || name == ".." || (hidden == Hidden::left_out && name[0] == '.')) continue;
    Entry entry{.name = std::string(name), .status = {}};
    if (sys::status_at(directory.fd(), next, entry.status) >= 0)
      entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::tuple(!is_directory(a), std::string_view(a.name)) <
           std::tuple(!is_directory(b), std::string_view(b.name));
  });
  return entries;
}

std::string row_of(const Entry& entry) {
  const std::string_view slash = is_directory(entry) ? "/" : "";
  const std::string size = entry.status.kind == sys::FileStatus::Kind::regular
                               ? std::to_string(entry.status.size)
                               : std::string();
  const std::chrono::sys_seconds time{std::chrono::seconds(entry.status.seconds)};
  char date[kDateSize];
  return "<tr><td><a href=\"" + percent_encode(entry.name) + std::string(slash) + "\">" +
         html_of(entry.name) + std::string(slash) + "</a><td>" + size + "<td>" +
         std::string(format_date(time, date)) + "\n";
}

}  // namespace

std::string list_directory(sys::Directory& directory, std::string_view path, Hidden hidden) {
  const std::vector<Entry> entries = entries_of(directory, hidden);
  const std::string title = html_of(path);
  std::string page = "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>" + title +
                     "</title>\n<h1>" + title + "</h1>\n<table cellpadding=\"4\">\n";
  if (path != "/") page += "<tr><td><a href=\"../\">../</a>\n";
  const std::size_t shown = std::min(entries.size(), kMostListed);
  for (std::size_t i = 0; i < shown; ++i) page += row_of(entries[i]);
  page += "</table>\n";
  if (shown < entries.size()) page += "<p>There is more than this.\n";
  return page;
}

}  // namespace spate::http
