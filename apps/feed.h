/* feed.h: --readers: which ranks read data, and which get what they hold from those. */
#ifndef WEFT_APPS_FEED_H
#define WEFT_APPS_FEED_H

#include "options.h"
#include "weft/data.h"

#define APP_READERS_OPTION(group)                                                                  \
    {                                                                                              \
        "readers", OPTION_COUNT, "", "N", group,                                                   \
            "so many ranks read the data, each record once, and the others get theirs from them; " \
            "without it, each rank reads what it holds",                                           \
            NULL, 1, WEFT_MAX_RANKS                                                                \
    }

/* app_feed - read a set as the options say; before it is started. NULL: there is none. Local. */
weft_status app_feed(const settings *s, const weft_mesh *mesh, weft_dataset *data,
                     weft_error *error);

#endif
