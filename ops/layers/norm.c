/* norm: layer norm and rms norm with variables of their own. */
#include "layer.h"
#include "op.h"
#include "weft/ops.h"

weft_value weft_norm(weft_value x, const weft_norm_options *options)
{
    weft_layer l;
    if (x.id == 0) return weft_no_value(x.graph);
    if (options == NULL)
        return weft_graph_fail(x.graph, "norm: options are NULL; they say name and feature");
    if (!weft_layer_begin(&l, "norm", options->name, options->source, x) ||
        !weft_layer_has(&l, "it goes along", x, options->feature))
        return weft_no_value(x.graph);
    if (!(options->epsilon >= 0))
        return weft_graph_fail(x.graph,
                               "norm: layer %.60s: epsilon is %g; it is above 0, or 0 for 1e-5",
                               options->name, options->epsilon);
    const double epsilon = options->epsilon > 0 ? options->epsilon : 1e-5;
    const weft_shape shape = WEFT_DIMS(options->feature);
    const weft_value gain = weft_layer_variable(&l, "gain", shape, weft_constant_of(1.0));
    if (options->is_rms) return weft_rms_norm_by(x, gain, options->feature, epsilon);
    const weft_value bias = weft_layer_variable(&l, "bias", shape, weft_constant_of(0.0));
    return weft_layer_norm_by(x, gain, bias, options->feature, epsilon);
}
