/* judge_words: what a verdict is put together from. */
#include "judge_parts.h"
#include "text.h"

#include <stdarg.h>
#include <string.h>

void weft_verdict_add(char *text, size_t bytes, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    weft_text_formatv(text + used, bytes - used, format, arguments);
    va_end(arguments);
}

void weft_say_rank(const weft_bench *b, const weft_rank_view *view)
{
    SAY(b, "rank %d (host %s, process %d)", view->rank, view->host, view->pid);
}

void weft_say_place(const weft_bench *b, const weft_rank_view *view)
{
    if (view->run > 0) SAY(b, "at step %lld, ", (long long)view->run);
    SAY(b, "%s", view->doing);
}

int weft_say_ranks(const weft_bench *b, weft_claim holds, const weft_rank_view *about)
{
    enum { SHOWN = 8 };
    int n = 0, said = 0;
    for (int i = 0; i < b->n; i++)
        n += holds(b, &b->views[i], about);
    SAY(b, n == 1 ? "rank" : "ranks");
    for (int i = 0; i < b->n && said < SHOWN; i++)
        if (holds(b, &b->views[i], about)) SAY(b, "%s %d", said++ > 0 ? "," : "", b->views[i].rank);
    if (n > said) SAY(b, " and %d more", n - said);
    return n;
}

static void say_saved(const weft_bench *b)
{
    int64_t saved = -1;
    for (int i = 0; i < b->n; i++)
        if (b->views[i].is_known && b->views[i].saved > saved) saved = b->views[i].saved;
    if (saved >= 0)
        SAY(b, " Newest checkpoint: step %lld.", (long long)saved);
    else
        SAY(b, " There is no checkpoint yet.");
}

bool weft_conclude(const weft_bench *b, int status, const weft_rank_view *at_fault)
{
    b->verdict->status = status;
    b->verdict->rank = at_fault->rank;
    say_saved(b);
    return true;
}
