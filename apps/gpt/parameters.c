/* parameters: how many numbers a model learns. */
#include "model.h"

double gpt_parameters(const gpt_shape *shape)
{
    const double embed = (double)shape->width, hidden = (double)shape->hidden;
    const int64_t shared = shape->kv_heads > 0 ? shape->kv_heads : shape->heads;
    const int64_t head = shape->head_dim > 0 ? shape->head_dim : shape->width / shape->heads;
    const double queries = (double)(shape->heads * head), keys = (double)(shared * head);
    const double norm = shape->is_rms ? 1 : 2; /* rows of it */
    const double rows = (double)((shape->ties ? 1 : 2) * shape->vocab) +
                        (double)(shape->ropes ? 0 : shape->seq) + norm;
    const double experts = (double)shape->mixture.experts, ups = shape->is_gated ? 2 : 1;
    const double biases = shape->biases == GPT_BIASES_NONE ? 0 : ups * hidden + embed;
    const double mlp =
        experts > 1 ? experts * (2 * embed * hidden + embed) : (ups + 1) * embed * hidden + biases;
    const double attention_biases = shape->biases == GPT_BIASES_ALL
                                        ? queries + 2 * keys + embed
                                        : 0; /* query; key, value; out */
    const double block = 2 * (queries + keys) * embed + attention_biases + mlp + 2 * norm * embed;
    return (double)shape->layers * block + rows * embed;
}
