/* facts: counts of tokens and slots. */
#include "facts.h"

void gpt_counts_write(FILE *file, const void *served)
{
    const gpt_counts *c = &((const gpt_facts_served *)served)->counts;
    serve_count(file, "prompt_tokens_total", "counter",
                "Tokens of prompts and inputs that were read.", c->read);
    serve_count(file, "tokens_total", "counter", "Tokens that were written.", c->written);
    serve_count(file, "slots", "gauge", "Texts that can go on at once.", c->n_slots);
    serve_count(file, "slots_busy", "gauge", "Texts that go on.", c->n_busy);
    serve_count_times(file, "first_token_seconds", "From a request to its first token.",
                      &c->firsts);
    serve_count_times(file, "gap_seconds", "From a token of a text to its next.", &c->gaps);
    serve_count_times(file, "tick_seconds", "One step of all texts, and a chunk.", &c->ticks);
}
