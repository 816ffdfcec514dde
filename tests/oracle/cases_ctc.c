/* cases_ctc.c: labels over time. */
#include "cases.h"

static const weft_dim steps = {"steps", 19}; /* more trips than are written down one by one */

/* Of each row a number from low to high. */
static weft_value counts(build_t *b, weft_shape shape, double low, double high)
{
    return weft_oracle_input(b, WEFT_I32, shape, low, high + 1);
}

static weft_value ctc_loss_x(build_t *b, weft_dtype t) /* every row has numbers of its own */
{
    const weft_value logits = in(b, t, WEFT_DIMS(ROWS, SEQ, C)),
                     labels = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(ROWS, D), 0, 2),
                     n_labels = counts(b, WEFT_DIMS(ROWS), 0, 2),
                     n_times = counts(b, WEFT_DIMS(ROWS), 3, 5);
    return weft_ctc_loss(logits, labels,
                         &(weft_ctc_options){.time = SEQ,
                                             .classes = C,
                                             .label = D,
                                             .n_times = n_times,
                                             .n_labels = n_labels,
                                             .blank = 2});
}
static weft_value ctc_loss_whole(build_t *b,
                                 weft_dtype t) /* all frames, all labels; time is last */
{
    const weft_value logits = in(b, t, WEFT_DIMS(A, FEATURE, SEQ)),
                     labels = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(C, A), 1, 4);
    return weft_ctc_loss(logits, labels,
                         &(weft_ctc_options){.time = SEQ, .classes = FEATURE, .label = C});
}
static weft_value ctc_loss_long(build_t *b, weft_dtype t) /* one label over many frames */
{
    const weft_value logits = in(b, t, WEFT_DIMS(steps, A, D)),
                     labels = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(ONE), 1, 2);
    return weft_ctc_loss(logits, labels,
                         &(weft_ctc_options){.time = steps, .classes = D, .label = ONE});
}
/* Labels that are no class, more labels than frames. */
static weft_value impossible(build_t *b, weft_dtype t, bool zero_infinity)
{
    const weft_value logits = in(b, t, WEFT_DIMS(ROWS, C, D)),
                     labels = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(ROWS, D), -1, 3);
    return weft_ctc_loss(
        logits, labels,
        &(weft_ctc_options){.time = C, .classes = D, .label = D, .zero_infinity = zero_infinity});
}
static weft_value ctc_loss_never(build_t *b, weft_dtype t)
{
    return impossible(b, t, false);
}
static weft_value ctc_loss_zero(build_t *b, weft_dtype t)
{
    return impossible(b, t, true);
}
static weft_value ctc_loss_counts(build_t *b, weft_dtype t) /* numbers that there cannot be */
{
    const weft_value logits = in(b, t, WEFT_DIMS(ROWS, SEQ, C)),
                     labels = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(ROWS, D), 0, 2),
                     n_labels = counts(b, WEFT_DIMS(ROWS), -2, 4),
                     n_times = counts(b, WEFT_DIMS(ROWS), -1, 7);
    return weft_ctc_loss(logits, labels,
                         &(weft_ctc_options){.time = SEQ,
                                             .classes = C,
                                             .label = D,
                                             .n_times = n_times,
                                             .n_labels = n_labels,
                                             .blank = 2,
                                             .zero_infinity = true});
}

/* with.dim, with.other, with.feature: time, classes, label; .begin: the blank; .mask: the operand that numbers labels, and behind
 * it that which numbers frames; .causal: zero_infinity */
#define CTC(time, classes, labels, ...)                                                            \
    .with = {.dim = time, .other = classes, .feature = labels, ##__VA_ARGS__}
CASES(ctc_loss, CASE(ctc_loss_x, OP_FLOAT, 2, CTC("seq", "c", "d", .begin = 2, .mask = 2)),
      CASE(ctc_loss_whole, OP_FLOAT, 1, CTC("seq", "feature", "c"), .alone = true),
      CASE(ctc_loss_long, OP_WIDE, 1, CTC("steps", "d", "one"), .alone = true),
      CASE(ctc_loss_never, OP_WIDE, 0, CTC("c", "d", "d"), .alone = true),
      CASE(ctc_loss_zero, OP_WIDE, 1, CTC("c", "d", "d", .causal = true), .alone = true),
      CASE(ctc_loss_counts, OP_WIDE, 1, CTC("seq", "c", "d", .begin = 2, .mask = 2, .causal = true),
           .alone = true))
