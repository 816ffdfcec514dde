/* refusal: a sentence may have bytes of anybody. */
#include "refusal.h"

#include <string.h>

#include "../json.h"
#include "utf8.h"

char *serve_refusal(int status, const char *sentence)
{
    const char *type = status < 500 ? "invalid_request_error" : "server_error";
    char text[3 * sizeof((weft_error *)NULL)->message + 1];
    const size_t n = serve_utf8(sentence, strlen(sentence), text);
    json_t *all = json_pack("{s:{s:s%, s:s, s:i}}", "error", "message", text, n, "type", type,
                            "code", status);
    char *said = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return said;
}
