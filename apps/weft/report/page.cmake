# page.cmake: OUT from PAGE, the folder of a page: its HTML with its style and scripts in it, as a table of lines for C.
# A line of page.html that is @style.css@ or @scripts@ is replaced by these files, and @data@ is where the data will go.
cmake_minimum_required(VERSION 3.22)
file(READ ${PAGE}/page.html html)
file(READ ${PAGE}/style.css style)
set(scripts "")
foreach(name ${SCRIPTS})
  file(READ ${PAGE}/${name} script)
  string(APPEND scripts "${script}")
endforeach()
string(REPLACE "@style.css@\n" "${style}" html "${html}")
string(REPLACE "@scripts@\n" "${scripts}" html "${html}")
string(FIND "${html}" "@data@\n" place)
string(SUBSTRING "${html}" 0 ${place} before)
string(REGEX REPLACE "[^\n]" "" ends "${before}")
string(LENGTH "${ends}" data_line)
string(REGEX REPLACE "[^\n]" "" ends "${html}")
string(LENGTH "${ends}" n)
string(REPLACE "\\" "\\\\" html "${html}")
string(REPLACE "\"" "\\\"" html "${html}")
string(REPLACE "?" "\\?" html "${html}")
string(REPLACE "\n" "\",\n    \"" html "${html}")
file(WRITE ${OUT} "/* Made from apps/weft/report/page. */
extern const char *const report_page_lines[];
extern const int report_page_n_lines, report_page_data_line;
const char *const report_page_lines[] = {
    \"${html}\"};
const int report_page_n_lines = ${n}, report_page_data_line = ${data_line};
")
