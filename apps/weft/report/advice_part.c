/* advice_part: what would help, as rows of a table. A run's own advice counts before that of its plan: it knows what the run was spent
 * on.
 */
#include "parts.h"

static json_t *text_or_null(const json_t *entry, const char *name)
{
    const char *text = json_string_value(json_object_get(entry, name));
    return text ? report_short_text(text) : json_null();
}

static json_t *number_or_null(const json_t *entry, const char *name)
{
    const json_t *number = json_object_get(entry, name);
    return json_is_number(number) ? app_json_number(json_number_value(number)) : json_null();
}

/* A command is typed again, so it is whole or not there. */
static json_t *command_of(const json_t *entry)
{
    enum { MOST = 8192 };
    const json_t *command = json_object_get(entry, "command");
    const bool fits = json_is_string(command) && json_string_length(command) < MOST;
    return fits ? json_copy((json_t *)(uintptr_t)command) : json_null();
}

void report_advice_part(report_data *data)
{
    enum { ROWS = 50 };
    const report_found *found = data->found;
    const bool is_plan_shown = json_object_get(data->root, "plan") != NULL;
    const json_t *from = found->advice ? found->advice : is_plan_shown ? found->plan : NULL;
    const json_t *list = json_object_get(from, "advice");
    if (!json_is_array(list)) return;
    json_t *rows = json_array();
    for (size_t i = 0; i < json_array_size(list) && i < ROWS; i++) {
        const json_t *entry = json_array_get(list, i);
        if (!json_is_object(entry)) continue;
        json_array_append_new(
            rows, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "what", text_or_null(entry, "what"),
                            "of", text_or_null(entry, "of"), "gain_seconds",
                            number_or_null(entry, "gain_seconds"), "gain_share",
                            number_or_null(entry, "gain_share"), "command", command_of(entry),
                            "reason", text_or_null(entry, "reason")));
    }
    json_object_set_new(data->root, "advice", rows);
}
