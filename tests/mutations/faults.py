"""faults.py: faults that the suite has to find: what is changed, and which tests are to fail because of it.

Each was chosen because a mistake of that kind is easily made, and shows in wrong numbers instead of a crash. A fault names a
file, the words in it that are replaced, once, by others, and a regular expression of tests, one of which has to fail.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    name: str
    file: str
    words: str
    becomes: str
    tests: str


FAULTS = [
    # ---- layout
    Fault("blocks_are_rounded_down", "layout/box.c", "length / n + (length % n != 0)", "length / n", "^layout/"),
    Fault("common_box_ends_with_the_later", "layout/box.c", "a->end[d] < b->end[d] ?", "a->end[d] > b->end[d] ?", "^layout/"),
    Fault("all_gather_counts_what_it_sends", "layout/convert.c", "[WEFT_REDUCE_SCATTER] = count_from, [WEFT_ALL_GATHER] = count_to",
          "[WEFT_REDUCE_SCATTER] = count_to, [WEFT_ALL_GATHER] = count_from",
          "^layout/convert$|^ops/plan"),
    Fault("gather_while_the_axis_is_wanted", "layout/convert.c",
          "if (axis < 0 || weft_spec_state(p->to, p->n_dims, axis) != WEFT_REPLICATED) continue;", "if (axis < 0) continue;",
          "^layout/convert$"),
    Fault("replicated_parts_count_on_each_rank", "layout/move.c",
          "return coordinate == 0 || weft_spec_state", "return coordinate >= 0 || weft_spec_state", "^collectives/move$"),
    Fault("all_reduce_costs_a_reduce_scatter", "layout/convert.c", "2 * bytes * part : bytes * part;", "bytes * part : bytes * part;",
          "^layout/|^ops/(single_axis|plans|policy|links)$"),
    # ---- collectives and copies
    Fault("part_of_rank_0_is_not_the_first", "collectives/move_pieces.c", "in->is_first = is_first(p, ranks[i]);", "in->is_first = is_first(p, ranks[i]) && i > 0;",
          "^collectives/(move|all_reduce|joined)$"),
    Fault("pieces_lie_over_each_other", "collectives/move_pieces.c", "next += piece_bytes(move, piece);",
          "next += piece_bytes(move, piece) - 8;", "^collectives/(move|joined)$"),
    Fault("box_begins_at_its_own", "collectives/box_span.c",
          "run->to_at += (piece->begin[d] - to->begin[d]) * to_stride;", "run->to_at += piece->begin[d] * to_stride;",
          "^collectives/move$|^mesh/box_copy$"),
    Fault("an_element_may_come_from_two", "collectives/move_pieces.c", "weft_box_meet(&common, &p->to, n_dims, &got) > 0)\n                return false;",
          "weft_box_meet(&common, &p->to, n_dims, &got) > 0)\n                continue;", "^collectives/boxes$"),
    Fault("readers_keep_no_order", "io/readers.c", "rows[readers[k].rank] =", "rows[readers[n - 1].rank] =", "^io/readers_mpi_2$"),
    Fault("who_reads_for_others_hands_over_its_rows_alone", "io/feed.c", "if (own->status == WEFT_OK && dataset->rows)", "if (own->status == WEFT_OK && !dataset->rows)",
          "^io/readers_mpi_2$"),
    Fault("joined_whatever_the_combine", "collectives/move.c", " &&\n        combine_of(first) == combine_of(step))", ")",
          "^collectives/(joined|move)$"),
    # ---- ops: values
    Fault("gather_reads_one_more", "ops/kernel/cpu/index.c", "const bool held = id >= x->first && id < x->end;",
          "const bool held = id >= x->first && id <= x->end;", "^ops/kernel_index$"),
    Fault("exclusive_sums_are_not", "ops/kernel/cpu/cumulate.c", ".exclusive = a->exclusive,", ".exclusive = false,",
          "^ops/kernel_along$|^oracle/values$|^reference/"),
    Fault("later_of_equals_is_the_argmax", "ops/kernel/cpu/reduce_merge.h", "better = b> a", "better = b>= a",
          "^ops/kernel_reduce$|^autodiff/ties$"),
    Fault("lse_scales_by_the_other_maximum", "ops/kernel/cpu/reduce_merge.h", "other[C1 + i] * exp(b - m)", "other[C1 + i] * exp(a - m)",
          "^ops/kernel_reduce$"),
    Fault("moments_forget_the_count", "ops/kernel/cpu/reduce_merge.h", "delta * (delta * (na * nb / count))", "delta * (delta * (na * nb))",
          "^ops/kernel_reduce$"),
    Fault("maximum_of_nan_is_a_number", "ops/kernel/cpu/reduce_state.c", "best = x[i] > best ? x[i] : best;                                                      \\\n            nan |= x[i] != x[i];",
          "best = x[i] > best ? x[i] : best; nan |= 0;", "^ops/kernel_reduce$"),
    Fault("nan_is_sorted_by_its_bits", "ops/kernel/cpu/order.c", "(value != value ? (KEY)-1 : key) ^ flip;", "key ^ flip;",
          "^ops/(kernel_along|order)$|^oracle/(values|extremes)$"),
    Fault("window_reaches_no_lower", "ops/op/conv.c", "window->offset + (spread < 0 ? spread : 0)", "window->offset",
          "^reference/spatial$|^oracle/ops$|^oracle/gradients$"),
    # ---- ops: gradients
    Fault("slope_of_cos_is_sin", "ops/op/cos.c", "weft_neg(weft_mul(vjp->dout[0], weft_sin(vjp->in[0])))",
          "weft_mul(vjp->dout[0], weft_sin(vjp->in[0]))", "^oracle/gradients$"),
    Fault("sums_run_the_same_way_back", "ops/op/cumsum.c", "back.reverse = !back.reverse;", "", "^oracle/gradients$"),
    Fault("relu_lets_zero_through", "ops/op/relu.c", "weft_greater(y, zero)", "weft_greater_equal(y, zero)", "^autodiff/kinks$"),
    Fault("gelu_bends_otherwise", "ops/op/gelu_slope.c", "3.0 * c * k", "2.0 * c * k", "^oracle/gradients$"),
    Fault("mod_rises_with_its_divisor", "ops/op/mod.c", "weft_neg(weft_sum_to(weft_mul(vjp->dout[0], times), vjp->in[1]))",
          "weft_sum_to(weft_mul(vjp->dout[0], times), vjp->in[1])", "^oracle/gradients$"),
    Fault("softplus_is_steep_too_early", "ops/op/softplus.c", "-1000.0, 1000.0", "-1.0, 1.0", "^oracle/gradients$"),
    Fault("erf_is_a_little_flatter", "ops/op/erf.c", "1.1283791670955126", "1.1283", "^oracle/gradients$"),
    # ---- autodiff
    Fault("second_reader_is_forgotten", "autodiff/gradients.c",
          "const weft_value sum = weft_add(unrounded(so_far, w->fresh[value]), unrounded(part, first));",
          "const weft_value sum = unrounded(part, first);", "^autodiff/gradients$"),
    Fault("one_value_counts_twice", "autodiff/gradients.c", "if (!counted) vjp->din", "if (!counted || true) vjp->din",
          "^autodiff/|^oracle/(gradients|random)$"),
    Fault("nothing_comes_from_behind_a_scan", "autodiff/scan_gradient.c", "return sum.id != 0 ? sum : zeros_like",
          "return sum.id == 0 ? sum : zeros_like", "^autodiff/scan$"),
    Fault("parts_are_not_made_again", "autodiff/gradients.c", "if (part != 0) w->graph->again = weft_part_again(w, part);",
          "(void)part;", "^autodiff/recompute(_scan)?$"),
    # ---- optimizers
    Fault("weights_grow_by_their_decay", "optim/update.c", "-u->options.weight_decay), 1.0)", "u->options.weight_decay), 1.0)",
          "^optim/(rules|optimizers|groups)$"),
    Fault("vectors_decay", "optim/update.c", "weft_dims_of_one(variable) >= 2)", "weft_dims_of_one(variable) >= 1)",
          "^optim/(rules|optimizers|groups)$"),
    Fault("means_are_not_weighted", "optim/update.c", "weft_scale(x, 1.0 - beta)", "x", "^optim/(rules|optimizers)$"),
    Fault("mean_is_twice_too_large", "optim/update.c", "1.0 / count", "2.0 / count", "^optim/(rules|adafactor|shampoo)$"),
    Fault("clipped_a_little_early", "optim/clip.c", "weft_shift(norm, 1e-6)", "weft_shift(norm, 1e-2)", "^optim/clip$"),
    Fault("clipped_by_one_tenth", "optim/clip.c", "weft_norm_of(variable, units), 1e-3)", "weft_norm_of(variable, units), 1e-1)",
          "^optim/clip$"),
    Fault("updates_by_numbers_that_are_none", "optim/loss_scale.c", "weft_equal(weft_sub(norm, norm), number(norm, 0.0))",
          "weft_equal(number(norm, 0.0), number(norm, 0.0))", "^optim/loss_scale$"),
    Fault("gradients_are_kept_not_added", "optim/accumulate.c", "weft_assign(*slot, weft_add(*slot, gradient))",
          "weft_assign(*slot, gradient)", "^optim/accumulate$"),
    Fault("one_cycle_begins_high", "optim/schedule.c", "c->o->rate / 25.0", "c->o->rate / 20.0", "^optim/schedule$"),
    # ---- the compiler
    Fault("attributes_make_no_difference", "ops/compile/simplify.c",
          "memcmp(other->attributes, node->attributes, node->attribute_bytes) != 0)", "other->attributes == NULL)",
          "^oracle/(random|values)$|^ops/identity$"),
    Fault("joined_loop_keeps_nothing", "ops/compile/fuse.c", "keeps[o] = is_needed_from(f, maker.out[o], 0, m, s);", "keeps[o] = false;",
          "^ops/fuse$|^oracle/random$"),
    Fault("joined_though_memory_grows", "ops/compile/fuse.c", "if (alive > most) return false;", "if (alive > most) return true;",
          "^ops/(fuse|memory|digest|plan|plans)$"),
    Fault("bundled_before_it_is_made", "ops/compile/fuse_horizontal.c", "b->maker[owner] > first ||", "", "^ops/fuse_updates$"),
    Fault("sum_begins_before_its_summand", "ops/compile/accumulate.c", "a->maker[other] < m &&", "", "^ops/accumulate$"),
    Fault("variable_is_overwritten_before_it_is_read", "ops/compile/accumulate.c", "return n == a->n_reads[placed];", "return n > 0;",
          "^ops/accumulate$|^optim/accumulate$"),
    Fault("buffers_lie_over_each_other", "ops/plan/pack.c", "taken->list[next[i]].begin < at + bytes", "taken->list[next[i]].begin + 64 < at + bytes",
          "^ops/pack"),
    Fault("latency_counts_for_little", "ops/plan/links.c", "latency * WEFT_USUAL_LINK : WEFT_LATENCY", "latency : WEFT_LATENCY", "^ops/links$"),
    Fault("views_of_what_is_overwritten", "ops/compile/views.c", "|| is_overwritten(v, step->out[0], s)",
          "|| (false && is_overwritten(v, step->out[0], s))", "^ops/fission$"),
    Fault("reversed_views_begin_one_trip_early", "ops/plan/views.c", "lie->begin += (trips - 1) * bytes;",
          "lie->begin += (trips - 2) * bytes;", "^ops/(views|fission)$|^autodiff/scan$"),
    Fault("joined_whatever_the_direction", "ops/compile/fission_behind.c", "return all->is_reversed == one.is_reversed;",
          "return all->is_reversed == one.is_reversed || true;", "^autodiff/scan$"),
    # ---- data and checkpoints
    Fault("order_has_one_sample_too_many", "io/permute.c", "while (x >= (uint64_t)n)", "while (x > (uint64_t)n)", "^io/permute$"),
    Fault("ignored_ids_are_refused", "io/bounds.c", " && (int64_t)x[i] != b->ignored) return i;", ") return i;", "^io/dataset$|^apps/data$|^ops/cross_entropy$"),
    Fault("texts_run_together", "io/windows.c", "*to++ = '\\n', at++;", "*to++ = ' ', at++;", "^io/windows$"),
    Fault("frozen_passes_differ", "io/order.c", "return i % o->records;", "return i;", "^io/windows$"),
    Fault("facts_without_room_are_dropped", "io/told.c", "weft_hash_add(&t->more, said, strlen(said) + 1);", "", "^io/windows$"),
    Fault("cut_begins_with_its_run", "io/checkpoint/runs.c", " + (cut->at - runs->at);", ";", "^io/runs$"),
    Fault("hashes_are_not_compared", "io/checkpoint/hash.c", "sizeof a->bytes) == 0;", "0) == 0;", "^io/checkpoint|^io/facts$"),
]
