/* answer.h: what is sent, as the protocol has it: parts of a stream, whole answers. */
#ifndef WEFT_APPS_GPT_ANSWER_H
#define WEFT_APPS_GPT_ANSWER_H

#include "facts.h"

/* All make bytes to be freed; NULL: out of memory. Local. */

/* gpt_answer_part - of a stream: the next n bytes of the text. why: NULL, or why it is over, and then the stream's end too. */
char *gpt_answer_part(const gpt_facts_served *facts, const gpt_request *r, size_t n,
                      const char *why);
/* gpt_answer_failure - of a stream that has begun: the sentence, and its end. */
char *gpt_answer_failure(int status, const char *sentence);
/* gpt_answer_text - all of it. gpt_answer_vectors - of all inputs. */
char *gpt_answer_text(const gpt_facts_served *facts, const gpt_request *r, const char *why);
char *gpt_answer_vectors(const gpt_facts_served *facts, const gpt_request *r);

/* gpt_answer_token - how likely a token was: its probability's log, and those of the likeliest. Local.
 *
 * logits  [facts->n_words] of dtype */
gpt_told_token gpt_answer_token(const gpt_facts_served *facts, int n_likely, weft_dtype dtype,
                                const void *logits, int32_t token);

#endif
