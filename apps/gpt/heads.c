/* heads: options of attention. */
#include "heads.h"

static weft_status check_rotary(const settings *s, weft_error *error)
{
    const weft_rope_options o = gpt_rotary_of(s);
    if (o.rows > 0 && o.high <= o.low)
        return weft_fail(error, WEFT_USAGE,
                         "--rope-low %g and --rope-high %g: pairs that turn less than the first in "
                         "--rope-rows %g are slowed down, and those that turn more than the second "
                         "are not; so the second must be larger",
                         o.low, o.high, o.rows);
    if (o.factor < 0 || o.low < 0 || o.rows < 0)
        return weft_fail(error, WEFT_USAGE,
                         "--rope-factor %g, --rope-low %g, --rope-rows %g: none may be below 0",
                         o.factor, o.low, o.rows);
    return WEFT_OK;
}

/* Numbers of a head. */
static weft_status check_numbers(const settings *s, weft_error *error)
{
    const long long width = settings_count(s, "width"), heads = settings_count(s, "heads");
    const long long said = settings_count(s, "head-dim"), n = said > 0 ? said : width / heads;
    if (said == 0 && width % heads != 0)
        return weft_fail(error, WEFT_USAGE,
                         "width %lld and heads %lld: the heads share the width equally, so "
                         "heads must divide it, or --head-dim says how many numbers each has",
                         width, heads);
    if (settings_flag(s, "rope") && n % 2 != 0)
        return weft_fail(error, WEFT_USAGE,
                         "width %lld and heads %lld: a head has %lld numbers, and --rope turns "
                         "them in pairs, so width / heads, or --head-dim, must be even",
                         width, heads, n);
    return WEFT_OK;
}

weft_status gpt_heads_check(const settings *s, weft_error *error)
{
    const long long heads = settings_count(s, "heads"), shared = settings_count(s, "kv-heads");
    WEFT_TRY(check_numbers(s, error));
    if (shared > 0 && heads % shared != 0)
        return weft_fail(error, WEFT_USAGE,
                         "heads %lld and kv-heads %lld: as many heads each share keys and values, "
                         "so kv-heads must divide heads",
                         heads, shared);
    return check_rotary(s, error);
}

weft_rope_options gpt_rotary_of(const settings *s)
{
    return (weft_rope_options){.base = settings_real(s, "rope-base"),
                               .factor = settings_real(s, "rope-factor"),
                               .low = settings_real(s, "rope-low"),
                               .high = settings_real(s, "rope-high"),
                               .rows = settings_real(s, "rope-rows")};
}
