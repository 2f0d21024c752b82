#include "spate/http/media_type.h"

#include <algorithm>
#include <array>

#include "http/codec/syntax.h"

namespace spate::http {

namespace {

struct FileType {
  std::string_view extension;
  std::string_view type;
};

// In ascending order.
constexpr FileType kFileTypes[] = {
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/aac"},
    {"apk", "application/vnd.android.package-archive"},
    {"apng", "image/apng"},
    {"atom", "application/atom+xml"},
    {"avi", "video/x-msvideo"},
    {"avif", "image/avif"},
    {"bin", "application/octet-stream"},
    {"bmp", "image/bmp"},
    {"br", "application/x-brotli"},
    {"bz2", "application/x-bzip2"},
    {"c", "text/plain; charset=utf-8"},
    {"cc", "text/plain; charset=utf-8"},
    {"conf", "text/plain; charset=utf-8"},
    {"cpp", "text/plain; charset=utf-8"},
    {"crt", "application/x-x509-ca-cert"},
    {"css", "text/css; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"deb", "application/vnd.debian.binary-package"},
    {"diff", "text/x-diff; charset=utf-8"},
    {"djvu", "image/vnd.djvu"},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"eot", "application/vnd.ms-fontobject"},
    {"epub", "application/epub+zip"},
    {"flac", "audio/flac"},
    {"geojson", "application/geo+json"},
    {"gif", "image/gif"},
    {"glb", "model/gltf-binary"},
    {"gltf", "model/gltf+json"},
    {"gz", "application/gzip"},
    {"h", "text/plain; charset=utf-8"},
    {"heic", "image/heic"},
    {"htm", "text/html; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
    {"ico", "image/vnd.microsoft.icon"},
    {"ics", "text/calendar; charset=utf-8"},
    {"ini", "text/plain; charset=utf-8"},
    {"iso", "application/x-iso9660-image"},
    {"jar", "application/java-archive"},
    {"java", "text/plain; charset=utf-8"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"jsonld", "application/ld+json"},
    {"jxl", "image/jxl"},
    {"key", "application/octet-stream"},
    {"log", "text/plain; charset=utf-8"},
    {"m3u8", "application/vnd.apple.mpegurl"},
    {"m4a", "audio/mp4"},
    {"m4s", "video/iso.segment"},
    {"m4v", "video/mp4"},
    {"map", "application/json"},
    {"md", "text/markdown; charset=utf-8"},
    {"mid", "audio/midi"},
    {"midi", "audio/midi"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"mkv", "video/matroska"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpd", "application/dash+xml"},
    {"mpeg", "video/mpeg"},
    {"mpg", "video/mpeg"},
    {"odp", "application/vnd.oasis.opendocument.presentation"},
    {"ods", "application/vnd.oasis.opendocument.spreadsheet"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"oga", "audio/ogg"},
    {"ogg", "audio/ogg"},
    {"ogv", "video/ogg"},
    {"opus", "audio/ogg"},
    {"otf", "font/otf"},
    {"patch", "text/x-diff; charset=utf-8"},
    {"pdf", "application/pdf"},
    {"pem", "application/x-pem-file"},
    {"png", "image/png"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"ps", "application/postscript"},
    {"py", "text/x-python; charset=utf-8"},
    {"rar", "application/vnd.rar"},
    {"rpm", "application/x-rpm"},
    {"rss", "application/rss+xml"},
    {"rtf", "application/rtf"},
    {"sh", "text/x-shellscript; charset=utf-8"},
    {"sql", "application/sql"},
    {"srt", "text/plain; charset=utf-8"},
    {"svg", "image/svg+xml"},
    {"svgz", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"text", "text/plain; charset=utf-8"},
    {"tgz", "application/gzip"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"ts", "video/mp2t"},
    {"tsv", "text/tab-separated-values; charset=utf-8"},
    {"ttc", "font/collection"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain; charset=utf-8"},
    {"vcf", "text/vcard; charset=utf-8"},
    {"vtt", "text/vtt; charset=utf-8"},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"weba", "audio/webm"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"xml", "application/xml"},
    {"xsl", "application/xslt+xml"},
    {"xz", "application/x-xz"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};
static_assert(std::ranges::is_sorted(kFileTypes, {}, &FileType::extension));

constexpr std::size_t kLongestExtension =
    std::ranges::max(kFileTypes, {}, [](const FileType& file) {
      return file.extension.size();
    }).extension.size();

constexpr std::string_view kCompressible[] = {"application/javascript",
                                              "application/json",
                                              "application/manifest+json",
                                              "application/postscript",
                                              "application/rtf",
                                              "application/sql",
                                              "application/toml",
                                              "application/wasm",
                                              "application/xml",
                                              "application/yaml",
                                              "application/x-ndjson",
                                              "font/collection",
                                              "font/otf",
                                              "font/ttf",
                                              "image/bmp",
                                              "application/vnd.ms-fontobject",
                                              "image/svg+xml",
                                              "image/vnd.microsoft.icon",
                                              "application/vnd.apple.mpegurl",
                                              "application/x-pem-file"};

bool ends_ignoring_case(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         equal_ignoring_case(text.substr(text.size() - end.size()), end);
}

}  // namespace

std::optional<MediaType> MediaType::parse(std::string_view text) {
  MediaType media;
  text = trimmed(text);
  media.type_ = token_at(text);
  text.remove_prefix(media.type_.size());
  if (media.type_.empty() || !text.starts_with('/')) return {};
  text.remove_prefix(1);
  media.subtype_ = token_at(text);
  media.parameters_ = text.substr(media.subtype_.size());
  std::string_view rest = media.parameters_;
  while (take_parameter(rest)) {
  }
  if (media.subtype_.empty() || !rest.empty()) return {};
  return media;
}

bool MediaType::is(std::string_view type, std::string_view subtype) const {
  return equal_ignoring_case(type_, type) && equal_ignoring_case(subtype_, subtype);
}

std::optional<std::string> MediaType::parameter(std::string_view name) const {
  std::string_view rest = parameters_;
  while (const auto parameter = take_parameter(rest)) {
    if (!equal_ignoring_case(parameter->name, name)) continue;
    std::string room(parameter->value.size(), '\0');
    return std::string(unquote(parameter->value, room.data()));
  }
  return {};
}

std::string_view content_type_of(std::string_view filename) {
  constexpr std::string_view kUnknown = "application/octet-stream";
  filename = filename.substr(filename.rfind('/') + 1);
  const std::size_t dot = filename.rfind('.');
  if (dot == std::string_view::npos || filename.size() - dot - 1 > kLongestExtension)
    return kUnknown;
  std::array<char, kLongestExtension> room;
  const auto end = std::ranges::transform(filename.substr(dot + 1), room.begin(), lower).out;
  const std::string_view extension(room.begin(), end);
  const FileType* found = std::ranges::lower_bound(kFileTypes, extension, {}, &FileType::extension);
  return found != std::end(kFileTypes) && found->extension == extension ? found->type : kUnknown;
}

bool is_compressible(std::string_view type) {
  type = trimmed(type.substr(0, type.find(';')));
  if (equal_ignoring_case(type.substr(0, 5), "text/")) return true;
  if (ends_ignoring_case(type, "+json") || ends_ignoring_case(type, "+xml")) return true;
  return std::ranges::any_of(
      kCompressible, [type](std::string_view known) { return equal_ignoring_case(known, type); });
}

}  // namespace spate::http
