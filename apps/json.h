/* json.h: what our programs have in common where they write JSON: numbers, and Jansson out of memory. */
#ifndef WEFT_APPS_JSON_H
#define WEFT_APPS_JSON_H

#include <jansson.h>

#include "weft/error.h"

/* app_json_status - WEFT_MEMORY when Jansson has been refused memory since the program began: to be asked before its word
 * is taken that a text is wrong, or that all is in what it made. app_leave asks too. Local. */
weft_status app_json_status(weft_error *error);
/* app_json_number - a number as JSON has it: null, where it is not finite. Local. */
json_t *app_json_number(double x);

#endif
