#include "session/mime.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace prims::session {
namespace {

// What programs write for people and for other programs; sorted by suffix.
constexpr std::array<std::pair<std::string_view, std::string_view>, 62> kTypes = {{
    {"7z", "application/x-7z-compressed"},
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"css", "text/css"},
    {"csv", "text/csv"},
    {"db", "application/vnd.sqlite3"},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"epub", "application/epub+zip"},
    {"feather", "application/vnd.apache.arrow.file"},
    {"flac", "audio/flac"},
    {"geojson", "application/geo+json"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"h5", "application/x-hdf5"},
    {"htm", "text/html"},
    {"html", "text/html"},
    {"ico", "image/vnd.microsoft.icon"},
    {"ics", "text/calendar"},
    {"ipynb", "application/x-ipynb+json"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript"},
    {"json", "application/json"},
    {"jsonl", "application/jsonl"},
    {"log", "text/plain"},
    {"md", "text/markdown"},
    {"mid", "audio/midi"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"npy", "application/x-npy"},
    {"npz", "application/zip"},
    {"odp", "application/vnd.oasis.opendocument.presentation"},
    {"ods", "application/vnd.oasis.opendocument.spreadsheet"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"ogg", "audio/ogg"},
    {"parquet", "application/vnd.apache.parquet"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"py", "text/x-python"},
    {"rtf", "application/rtf"},
    {"sqlite", "application/vnd.sqlite3"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"tsv", "text/tab-separated-values"},
    {"txt", "text/plain"},
    {"wav", "audio/wav"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"xml", "application/xml"},
    {"xz", "application/x-xz"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
}};

static_assert(std::ranges::is_sorted(kTypes, {}, &std::pair<std::string_view, std::string_view>::first));

}  // namespace

std::string mime_type(std::string_view file_name) {
  constexpr const char* kUnknown = "application/octet-stream";
  const auto dot = file_name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return kUnknown;
  std::string suffix(file_name.substr(dot + 1));
  std::ranges::transform(suffix, suffix.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found = std::ranges::lower_bound(kTypes, std::string_view(suffix), {},
                                              &std::pair<std::string_view, std::string_view>::first);
  return found != kTypes.end() && found->first == suffix ? std::string(found->second) : kUnknown;
}

}  // namespace prims::session
