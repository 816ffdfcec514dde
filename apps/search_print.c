/* search_print: what a search found, for people: the ten best, why the first is first, and what to type. */
#include "search.h"

#include <math.h>
#include <string.h>

#include "weft/number.h"

#define GIB 1073741824.0

static double part(double some, double all)
{
    return all > 0 ? 100 * some / all : 0;
}

static void print_counts(const weft_search_options *options, const weft_found *found)
{
    const weft_left_out *out = &found->left_out;
    char best[WEFT_TIME_TEXT], least[WEFT_TIME_TEXT];
    printf("%d rank%s on %s: %lld choices, with %d roles of an axis\n", options->ranks,
           options->ranks == 1 ? "" : "s", weft_machine_model_name(options->machine),
           (long long)found->n_choices, found->n_roles);
    printf("  planned %lld", (long long)found->n_planned);
    if (found->n_estimated > 0)
        printf(", %lld of these by few layers alone", (long long)found->n_estimated);
    if (found->n_misfits > 0) printf("; %lld do not fit into memory", (long long)found->n_misfits);
    putchar('\n');
    if (out->memory > 0)
        printf("  left out %lld whose variables alone do not fit\n", (long long)out->memory);
    if (out->floors > 0)
        printf("  left out %lld that cannot be quicker than the best\n", (long long)out->floors);
    if (out->unlooked > 0) printf("  not looked at %lld\n", (long long)out->unlooked);
    if (out->illegal > 0)
        printf("  refused %lld; the first: %s\n", (long long)out->illegal, out->sentence);
    double quickest = found->best[0].prediction.seconds; /* the measured best may not be it */
    for (int i = 1; i < found->n; i++)
        quickest = fmin(quickest, found->best[i].prediction.seconds);
    (void)weft_time_text(quickest, best);
    (void)weft_time_text(found->least_seconds, least);
    if (found->is_exact)
        printf("best: %s; no other choice can be quicker\n", best);
    else if (found->least_seconds > 0)
        printf("best: %s; none can be below %s%s\n", best, least,
               found->out_of_time ? ". Time was over: another run may find another" : "");
    else
        printf("best: %s; there are choices that were not listed%s\n", best,
               found->out_of_time ? " in time: another run may find another" : "");
    if (!found->is_exact && found->guess_seconds > 0)
        printf(
            "guesses, half of which were off by more than %.0f %%, have none of the others below "
            "%s\n",
            100 * found->guess_error, weft_time_text(found->guess_seconds, least));
}

static void print_table(const app_search_result *result)
{
    const weft_found *found = &result->found;
    const bool is_measured = result->measured[0] > 0;
    printf("\n%4s %10s%s %9s %9s  choice\n", "", "predicted", is_measured ? "   measured" : "",
           "GiB", "exposed");
    for (int i = 0; i < found->n; i++) {
        const weft_found_choice *c = &found->best[i];
        char text[WEFT_TIME_TEXT], choice[900];
        (void)weft_choice_print(&c->choice, choice, sizeof choice);
        printf("%4d %10s", i + 1, weft_time_text(c->prediction.seconds, text));
        if (is_measured)
            printf(" %10s",
                   result->measured[i] > 0 ? weft_time_text(result->measured[i], text) : "");
        printf(" %9.2f %7.1f %%  %s\n", (double)c->bytes / GIB,
               part(c->prediction.exposed_seconds, c->prediction.seconds),
               *choice ? choice : "(one rank)");
    }
}

static int n_ties(const weft_found *found)
{
    int n = 0;
    while (n < found->n && found->best[n].prediction.seconds < found->tie_seconds)
        n++;
    return n;
}

bool app_search_same(const weft_choice *a, const weft_choice *b)
{
    char one[900], other[900];
    (void)weft_choice_print(a, one, sizeof one);
    (void)weft_choice_print(b, other, sizeof other);
    return strcmp(one, other) == 0;
}

/* Of a tie the plainest is the one to type, which may be none of the ten. */
static void print_tie(const weft_found *found)
{
    char text[WEFT_TIME_TEXT], choice[900];
    const int ties = n_ties(found);
    const double part = 100 * (found->tie_seconds / found->best[0].prediction.seconds - 1);
    if (ties > 1) printf("1 to %d are within %.0f %%: a tie, as predictions go\n", ties, part);
    if (app_search_same(&found->chosen.choice, &found->best[0].choice)) return;
    (void)weft_choice_print(&found->chosen.choice, choice, sizeof choice);
    printf("the plainest within %.0f %% of the best, %s: %s\n", part,
           weft_time_text(found->chosen.prediction.seconds, text), choice);
}

static void print_row(const char *what, double first, double second)
{
    char a[WEFT_TIME_TEXT], b[WEFT_TIME_TEXT];
    printf("  %-26s %12s %12s\n", what, weft_time_text(first, a), weft_time_text(second, b));
}

static void print_why(const weft_found *found)
{
    const weft_found_choice *first = &found->best[0], *second = &found->best[1];
    const weft_prediction *p = &first->prediction, *q = &second->prediction;
    printf("\nwhy, beside the second\n");
    print_row("a step", p->seconds, q->seconds);
    print_row("  computing", p->work_seconds, q->work_seconds);
    print_row("  exchanges that show", p->exposed_seconds, q->exposed_seconds);
    print_row("  exchanges in all", p->exchange_seconds, q->exchange_seconds);
    for (int i = 0; i < WEFT_PHASES; i++)
        print_row(weft_phase_name((weft_phase)i), p->phase_seconds[i], q->phase_seconds[i]);
    printf("  %-26s %8.2f GiB %8.2f GiB\n", "memory", (double)first->bytes / GIB,
           (double)second->bytes / GIB);
}

static void print_turns(const weft_machine_model *machine, const weft_turn *turns, int n_turns)
{
    int n = 0;
    for (int i = 0; i < n_turns; i++)
        if (turns[i].factor > 0)
            printf("%s  %-36s %.3g times\n",
                   n++ > 0 ? "" : "the second is as quick where one of these is other:\n",
                   turns[i].what, turns[i].factor);
    if (n == 0 && n_turns > 0)
        printf("no one figure of %s, from a hundredth to a hundred times what it is, makes the "
               "second as quick\n",
               weft_machine_model_name(machine));
}

static void print_beyond(const weft_found_choice *beyond)
{
    char text[WEFT_TIME_TEXT], choice[900];
    (void)weft_choice_print(&beyond->choice, choice, sizeof choice);
    printf("with %.2f GiB a rank another one is quicker, %s: %s\n", (double)beyond->bytes / GIB,
           weft_time_text(beyond->prediction.seconds, text), choice);
}

void app_search_print(const app_search *search, const app_search_result *result)
{
    const weft_found *found = &result->found;
    char command[4096];
    print_counts(result->options, found);
    print_table(result);
    if (result->measured[0] == 0) print_tie(found);
    if (found->n > 1) print_why(found);
    if (found->beyond.bytes > 0) print_beyond(&found->beyond);
    if (found->n > 1) print_turns(result->options->machine, result->turns, result->n_turns);
    app_search_command(search, &app_search_chosen(result)->choice, command, sizeof command);
    printf("\n%s\n", command);
}
