/* page.h (private): the HTML file of a report: our page with the data in it. */
#ifndef WEFT_APPS_REPORT_PAGE_H
#define WEFT_APPS_REPORT_PAGE_H

#include <stdio.h>

#include "../../json.h"

enum { REPORT_MOST_BYTES = 2000000 };

/* report_page_text - the data as text that may stand in a script element: ASCII, and no < in it. NULL: out of memory. Own it:
 * free. */
char *report_page_text(const json_t *data);
/* report_page_bytes - how long the page gets with a text of the data. */
size_t report_page_bytes(const char *text);
/* report_page_write - the page. Local. What cannot be written is known by ferror(file). */
void report_page_write(const char *text, FILE *file);
/* report_page_is_ours - whether the file at `path` begins as a page of ours does. False where there is none. */
bool report_page_is_ours(const char *path);

#endif
