/* dataset_facts: what a set says of itself, in words, and which ids its fields may hold. */
#include "dataset_open.h"
#include "facts.h"
#include "fingerprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- in words ------------------------------------------------------------------------------------ */

const char *weft_dataset_facts(const weft_dataset *dataset)
{
    return dataset && dataset->facts ? dataset->facts : "";
}

weft_status weft_dataset_fact(weft_dataset *dataset, const char *name, const char *value,
                              weft_error *error)
{
    WEFT_GIVEN(dataset, error);
    WEFT_GIVEN(name, error);
    WEFT_GIVEN(value, error);
    dataset->has_agreed = false;
    return weft_facts_set(&dataset->facts, name, value, error);
}

weft_status weft_dataset_fact_file(weft_dataset *dataset, const char *name, const char *path,
                                   weft_error *error)
{
    char print[WEFT_PRINT_TEXT];
    int64_t bytes;
    int file;
    WEFT_GIVEN(dataset, error);
    WEFT_GIVEN(name, error);
    WEFT_GIVEN(path, error);
    WEFT_TRY(weft_file_open(path, &file, &bytes, error));
    const weft_status status =
        weft_fingerprint_file(file, path, 0, bytes, "bytes", bytes, print, error);
    close(file);
    return status == WEFT_OK ? weft_dataset_fact(dataset, name, print, error) : status;
}

bool weft_dataset_grew(const weft_dataset *dataset, const char *facts, char *text, size_t bytes)
{
    const weft_chain *base = weft_chain_base(dataset->chain);
    const weft_chain_kind *kind = base->kind;
    char before[WEFT_PRINT_TEXT], now[WEFT_PRINT_TEXT], print[WEFT_PRINT_TEXT], *unit;
    text[0] = '\0';
    if (kind->print_first == NULL || !weft_facts_value(facts, kind->fact, before, sizeof before) ||
        !weft_facts_value(weft_dataset_facts(dataset), kind->fact, now, sizeof now))
        return false;
    const long long n = strtoll(before, &unit, 10), n_now = strtoll(now, NULL, 10);
    if (n < 1 || n >= n_now || kind->print_first(base->self, n, print, NULL) != WEFT_OK ||
        strcmp(print, before) != 0)
        return false;
    const int n_unit = (int)strcspn(unit, "(") - 1; /* " bytes" */
    snprintf(text, bytes,
             "it has grown from %lld to %lld%.*s, of which the first %lld are the same", n, n_now,
             n_unit, unit, n);
    return true;
}

/* ---- ids ----------------------------------------------------------------------------------------- */

weft_bound_source weft_dataset_numbers(const weft_dataset *dataset, int field)
{
    const weft_chain *chain = dataset->chain, *base = weft_chain_base(chain);
    return (weft_bound_source){.chain = chain,
                               .field = field,
                               .count = base->found.records *
                                        weft_field_count(&base->found.fields[field])};
}

/* The field of that name; -1: there is none. */
static int find_field(const weft_dataset *dataset, const char *name, weft_error *error)
{
    const int field = weft_chain_field(dataset->chain, name);
    if (field < 0)
        weft_fail(error, WEFT_USAGE, "the dataset fills no input named %.80s; its first is %.80s",
                  name, dataset->chain->found.fields[0].name);
    return field;
}

weft_status weft_dataset_bound(weft_dataset *dataset, const char *name, int64_t n, int64_t ignored,
                               weft_error *error)
{
    WEFT_GIVEN(dataset, error);
    WEFT_GIVEN(name, error);
    WEFT_GIVEN_RANGE(n, 1, INT64_MAX, error);
    const int field = find_field(dataset, name, error);
    if (field < 0) return WEFT_USAGE;
    if (dataset->program)
        return weft_fail(error, WEFT_USAGE,
                         "weft_dataset_bound: the dataset has been started, and reads already; say "
                         "it before");
    const int64_t later = dataset->chain->found.fields[field].later;
    const weft_bound first = dataset->bounds[0];
    const bool is_same = first.is_kept && first.n == n && first.ignored == ignored;
    weft_bound_source from = weft_dataset_numbers(dataset, field);
    if (later > 0 && is_same) from.known = from.count - later;
    dataset->bounds[field] = (weft_bound){n, ignored, false};
    WEFT_TRY(weft_bound_scan(&dataset->bounds[field], &from, error));
    dataset->bounds[field].is_kept = true;
    return WEFT_OK;
}

int64_t weft_dataset_highest(const weft_dataset *dataset, const char *name, weft_error *error)
{
    int64_t highest;
    if (weft_check_given(dataset != NULL, __func__, "dataset", error) != WEFT_OK ||
        weft_check_given(name != NULL, __func__, "name", error) != WEFT_OK)
        return -1;
    const int field = find_field(dataset, name, error);
    if (field < 0) return -1;
    const weft_bound_source from = weft_dataset_numbers(dataset, field);
    return weft_bound_highest(&from, &highest, error) == WEFT_OK ? highest : -1;
}
