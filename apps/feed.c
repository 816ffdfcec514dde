/* feed: --readers: which ranks read data. See feed.h. */
#include "feed.h"

weft_status app_feed(const settings *s, const weft_mesh *mesh, weft_dataset *data,
                     weft_error *error)
{
    const int asked = (int)settings_count(s, "readers"), n = weft_mesh_n_ranks(mesh);
    if (data == NULL || asked == 0) return WEFT_OK;
    if (asked > n)
        return weft_fail(error, WEFT_USAGE,
                         "--readers %d, and mesh %.200s has %d rank%s; give 1 to %d, or leave it "
                         "away: each rank reads what it holds then",
                         asked, weft_mesh_text(mesh), n, n == 1 ? "" : "s", n);
    return weft_dataset_feed(data, &(weft_feed_options){.n_readers = asked}, error);
}
