/* groups: text to groups of an optimizer. */
#include "groups.h"
#include "weft/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static weft_status number_of(const char *what, const char *value, double *number, weft_error *error)
{
    const int length = weft_number_read(value, number);
    if (length > 0 && value[length] == '\0' && isfinite(*number) && *number >= 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "groups: %s=%.60s: it is a number, 0 or above", what,
                     value);
}

static weft_status take_rate(weft_optimizer_group *group, const char *value, weft_error *error)
{
    WEFT_TRY(number_of("rate", value, &group->rate_scale, error));
    if (group->rate_scale > 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "groups: %.60s has rate=0; weights that stay as they are belong to no "
                     "optimizer; give a rate above 0",
                     group->pattern);
}

static weft_status take_decay(weft_optimizer_group *group, const char *value, weft_error *error)
{
    WEFT_TRY(number_of("decay", value, &group->weight_decay, error));
    if (group->weight_decay == 0) group->weight_decay = -1; /* none, where 0 is the others' */
    return WEFT_OK;
}

static weft_status take_optimizer(weft_optimizer_group *group, const char *value, weft_error *error)
{
    (void)error;
    group->optimizer = value;
    return WEFT_OK;
}

static const struct {
    const char *name;
    weft_status (*take)(weft_optimizer_group *group, const char *value, weft_error *error);
} words[] = {{"rate", take_rate}, {"decay", take_decay}, {"optimizer", take_optimizer}};
enum { N_WORDS = sizeof words / sizeof *words };

static weft_status take_word(weft_optimizer_group *group, char *word, weft_error *error)
{
    const char *names[N_WORDS];
    char *value = strchr(word, '=');
    if (value != NULL) *value++ = '\0';
    for (int i = 0; i < N_WORDS; i++) {
        names[i] = words[i].name;
        if (value != NULL && strcmp(word, words[i].name) == 0)
            return words[i].take(group, value, error);
    }
    const char *near = weft_nearest(word, names, N_WORDS);
    return weft_fail(error, WEFT_USAGE,
                     "groups: %.60s: \"%.60s\" is none of rate=X, decay=X, optimizer=NAME%s%s%s",
                     group->pattern, word, near ? "; did you mean " : "", near ? near : "",
                     near ? "?" : "");
}

static weft_status take_group(gpt_groups *groups, char *text, weft_error *error)
{
    char *says = strchr(text, ':'), *rest = NULL;
    if (groups->n == GPT_MOST_GROUPS)
        return weft_fail(error, WEFT_USAGE, "groups: there are more than %d", GPT_MOST_GROUPS);
    if (says == NULL || says == text || says[1] == '\0')
        return weft_fail(error, WEFT_USAGE,
                         "groups: \"%.60s\" is no PATTERN:WHAT=VALUE, as *.bias:decay=0", text);
    *says = '\0';
    weft_optimizer_group *group = &groups->list[groups->n++];
    group->pattern = text;
    for (char *word = strtok_r(says + 1, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        WEFT_TRY(take_word(group, word, error));
    return WEFT_OK;
}

weft_status gpt_groups_read(const char *text, gpt_groups *groups, weft_error *error)
{
    char *rest = NULL;
    *groups = (gpt_groups){0};
    if (strlen(text) >= sizeof groups->words)
        return weft_fail(error, WEFT_USAGE, "groups: their text has %zu bytes; it may have %d",
                         strlen(text), GPT_GROUPS_BYTES - 1);
    strcpy(groups->words, text);
    for (char *one = strtok_r(groups->words, ";", &rest); one; one = strtok_r(NULL, ";", &rest))
        WEFT_TRY(take_group(groups, one, error));
    return WEFT_OK;
}
