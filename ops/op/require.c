/* require: y = x, where a condition holds; where it does not, the run fails with a sentence.
 *
 * The condition is whole on every rank, made by the same sums whatever is split: so all ranks fail at the same step, with the same
 * words, and nobody waits for another. Linear in x. Gradient: dx = dy.
 */
#include <string.h>

#include "op.h"
#include "weft/ops.h"

static const weft_field fields[] = {WEFT_FIELD(weft_require_attributes, sentence)};
static const weft_attributes described = WEFT_ATTRIBUTES(weft_require_attributes, fields);

static weft_status infer(weft_site *site, weft_error *error)
{
    char text[160];
    WEFT_TRY(weft_check_ids(site, 1, error));
    for (int i = 1; i < site->n_in; i++) {
        if (site->in[i].shape.n_dims == 0) continue;
        weft_shape_print(&site->in[i].shape, text, sizeof text);
        return weft_fail(error, WEFT_USAGE,
                         "%s is %s, and here one number is possible; reduce it, as by weft_all",
                         weft_site_name(site, i), text);
    }
    site->n_out = 1;
    site->out[0] = site->in[0];
    return WEFT_OK;
}

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = vjp->dout[0];
}

const weft_op weft_op_require = {
    .name = "require",
    .attributes = &described,
    .infer = infer,
    .factors = weft_factors_pass,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
};

weft_value weft_require(weft_value x, weft_value holds, weft_value number, const char *sentence)
{
    enum { MOST = 400 };
    weft_require_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (x.graph == NULL) return weft_no_value(NULL);
    if (sentence == NULL || sentence[0] == '\0' || strlen(sentence) > MOST)
        return weft_graph_fail(x.graph, "require: the sentence has %zu letters; it has 1 to %d",
                               sentence == NULL ? (size_t)0 : strlen(sentence), MOST);
    attributes.sentence = weft_graph_intern(x.graph, sentence);
    const weft_value in[] = {x, holds, number};
    const int n_in = number.graph == NULL && number.id == 0 ? 2 : 3;
    return weft_emit(x.graph, &weft_op_require, in, n_in, &attributes, sizeof attributes);
}
