/* report: what the root makes of the findings of all processes: a table a host, and what differs between hosts. */
#include "report.h"

#include <math.h>
#include <string.h>

/* ---- what the root makes of it -------------------------------------------------------------- */

static int verdict_of(const json_t *found)
{
    const char *word = json_string_value(json_array_get(found, 0));
    for (int i = 0; word && i < DOCTOR_VERDICTS; i++)
        if (strcmp(doctor_words[i], word) == 0) return i;
    return DOCTOR_NONE;
}

static const char *part(const json_t *found, size_t i)
{
    const char *text = json_string_value(json_array_get(found, i));
    return text ? text : "";
}

static json_t *of_process(const json_t *process, const char *check)
{
    return json_object_get(json_object_get(process, "findings"), check);
}

static void add_line(json_t *lines, const char *name, const json_t *found, int process)
{
    json_t *line = json_pack("{s:s, s:s, s:s}", "name", name, "verdict", part(found, 0), "text",
                             part(found, 1));
    if (process >= 0) json_object_set_new(line, "process", json_integer(process));
    json_array_append_new(lines, line);
}

/* A line a check; and one more for the process of the host that has it worst, if that is worse. */
static json_t *lines_of_host(const json_t *all, const json_t *members)
{
    json_t *lines = json_array(), *member;
    const json_t *first =
        json_array_get(all, (size_t)json_integer_value(json_array_get(members, 0)));
    for (int i = 0; i < DOCTOR_CHECKS; i++) {
        const json_t *found = of_process(first, doctor_checks[i].name);
        int worst = verdict_of(found), process = -1;
        size_t k;
        if (found) add_line(lines, doctor_checks[i].name, found, -1);
        json_array_foreach(members, k, member)
        {
            const int p = (int)json_integer_value(member);
            const json_t *one = of_process(json_array_get(all, (size_t)p), doctor_checks[i].name);
            if (doctor_checks[i].scope == DOCTOR_EACH && verdict_of(one) > worst) {
                worst = verdict_of(one);
                process = p;
            }
        }
        if (process >= 0)
            add_line(lines, doctor_checks[i].name,
                     of_process(json_array_get(all, (size_t)process), doctor_checks[i].name),
                     process);
    }
    return lines;
}

static const char *host_of(const json_t *process)
{
    return json_string_value(json_object_get(process, "host"));
}

/* [{"host": ..., "processes": [0, 1], "checks": [...]}, ...] in the order of the processes. */
static json_t *hosts_of(const json_t *all)
{
    json_t *hosts = json_array(), *members = json_object(), *process, *list;
    const char *name;
    size_t i;
    json_array_foreach(all, i, process)
    {
        name = host_of(process);
        if (!json_object_get(members, name)) json_object_set_new(members, name, json_array());
        json_array_append_new(json_object_get(members, name), json_integer((json_int_t)i));
    }
    json_object_foreach(members, name, list)
        json_array_append_new(hosts, json_pack("{s:s, s:O, s:o}", "host", name, "processes", list,
                                               "checks", lines_of_host(all, list)));
    json_decref(members);
    return hosts;
}

static const json_t *first_of(const json_t *all, const json_t *host)
{
    const json_t *first = json_array_get(json_object_get(host, "processes"), 0);
    return json_array_get(all, (size_t)json_integer_value(first));
}

/* What has to be the same on all hosts: of check i, and after the checks the clock, which was read
 * when all had just waited for each other. */
static void fact_of(const json_t *process, int i, double zero, char *text, size_t bytes)
{
    enum { APART = 1 /* second */ };
    const double apart = json_number_value(json_object_get(process, "time")) - zero;
    if (i < DOCTOR_CHECKS)
        snprintf(text, bytes, "%s", part(of_process(process, doctor_checks[i].name), 2));
    else if (fabs(apart) < APART)
        snprintf(text, bytes, "as the first host's");
    else
        snprintf(text, bytes, "%+.1f s", apart);
}

/* [{"name": "kernel", "values": {"n1": "5.10", "n2": "5.15"}}, ...] */
static json_t *differences(const json_t *all, const json_t *hosts)
{
    json_t *differs = json_array(), *host;
    const double zero = json_number_value(json_object_get(json_array_get(all, 0), "time"));
    for (int i = 0; i <= DOCTOR_CHECKS; i++) {
        json_t *values = json_object();
        char first[160] = "", text[160];
        bool is_same = true;
        size_t k;
        json_array_foreach(hosts, k, host)
        {
            fact_of(first_of(all, host), i, zero, text, sizeof text);
            if (k == 0) snprintf(first, sizeof first, "%s", text);
            is_same = is_same && strcmp(first, text) == 0;
            json_object_set_new(values, json_string_value(json_object_get(host, "host")),
                                json_string(text));
        }
        const char *name = i < DOCTOR_CHECKS ? doctor_checks[i].name : "clocks";
        if (!is_same)
            json_array_append_new(differs, json_pack("{s:s, s:O}", "name", name, "values", values));
        json_decref(values);
    }
    return differs;
}

static int count(const json_t *report, verdict v)
{
    const json_t *host, *line;
    size_t i, k;
    int n = 0;
    json_array_foreach(json_object_get(report, "hosts"), i, host)
        json_array_foreach(json_object_get(host, "checks"), k, line) n +=
        strcmp(json_string_value(json_object_get(line, "verdict")), doctor_words[v]) == 0;
    return n;
}

json_t *doctor_report(const json_t *all)
{
    json_t *hosts = hosts_of(all);
    json_t *report = json_pack("{s:o, s:o}", "hosts", hosts, "differs", differences(all, hosts));
    json_object_set_new(report, "ok", json_boolean(count(report, DOCTOR_FAIL) == 0));
    return report;
}

/* ---- printing ------------------------------------------------------------------------------- */

static void print_line(const json_t *line, bool is_quiet)
{
    const json_t *process = json_object_get(line, "process");
    const char *word = json_string_value(json_object_get(line, "verdict"));
    if (is_quiet && strcmp(word, doctor_words[DOCTOR_OK]) == 0) return;
    printf("  %-4s  %-11s  %s", word, json_string_value(json_object_get(line, "name")),
           json_string_value(json_object_get(line, "text")));
    if (process) printf(" (process %lld)", (long long)json_integer_value(process));
    putchar('\n');
}

static void print_difference(const json_t *difference)
{
    json_t *value;
    const char *host, *before = "";
    printf("  %-11s ", json_string_value(json_object_get(difference, "name")));
    json_object_foreach(json_object_get(difference, "values"), host, value)
    {
        const char *text = json_string_value(value);
        printf("%s %s: %s", before, host, *text ? text : "-");
        before = ";";
    }
    putchar('\n');
}

void doctor_print(const json_t *report, bool is_quiet)
{
    const json_t *host, *one;
    size_t i, k;
    json_array_foreach(json_object_get(report, "hosts"), i, host)
    {
        const size_t n = json_array_size(json_object_get(host, "processes"));
        printf("%s, %zu process%s\n", json_string_value(json_object_get(host, "host")), n,
               n == 1 ? "" : "es");
        json_array_foreach(json_object_get(host, "checks"), k, one) print_line(one, is_quiet);
    }
    if (json_array_size(json_object_get(report, "differs")) > 0)
        puts("what differs between the hosts");
    json_array_foreach(json_object_get(report, "differs"), i, one) print_difference(one);
    printf("%d ok, %d to look at, %d that fail\n", count(report, DOCTOR_OK),
           count(report, DOCTOR_WARN), count(report, DOCTOR_FAIL));
}
