/* links.h: --link: the speed of links as it was stated, or as it was measured when that was asked for. */
#ifndef WEFT_APPS_LINKS_H
#define WEFT_APPS_LINKS_H

#include "app.h"

enum { APP_LINK_BYTES = 600 };

typedef struct app_link {
    char text[APP_LINK_BYTES]; /* for weft_compile_options.link */
    bool is_measured;
} app_link;

/* app_links - what --link says. "measured": what run.json of the run says of this mesh, else it is measured now; so a run that
 * goes on has the plan that it began with. The same on all ranks. Collective over the mesh. */
weft_status app_links(const settings *s, weft_mesh *mesh, app_link *link, weft_error *error);
/* app_links_measure - by axis [WEFT_MAX_AXES]. Collective over the mesh. */
weft_status app_links_measure(weft_mesh *mesh, weft_link_speed *speeds, weft_error *error);

#endif
