/* map_for: which of the maps that come with Weft a file's names, or a checkpoint's, are those of. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "map.h"
#include "weft/name.h"

enum { MAX_PATH = 4096, MOST_MAPS = 64 };

/* One of the rule's patterns is the name: of theirs, but for the prefix, or of ours. */
static bool is_of_rule(const carry_map *map, const map_rule *rule, bool is_theirs, const char *name)
{
    const map_words *patterns = is_theirs ? &rule->from : &rule->to;
    const size_t prefix = strlen(map->prefix);
    map_found found;
    if (is_theirs && strncmp(name, map->prefix, prefix) == 0) name += prefix;
    for (int p = 0; p < patterns->n; p++)
        if (map_match(patterns->at[p], name, &found)) return true;
    return false;
}

/* Names that it has, less what it wants and there is not. */
static int64_t score(const carry_map *map, const source *from, bool is_theirs)
{
    int64_t n = 0;
    for (int i = 0; i < from->n_tensors; i++) {
        bool is_one = false;
        for (int r = 0; r < map->n_rules && !from->tensors[i].is_slot; r++)
            is_one = is_one || is_of_rule(map, &map->rules[r], is_theirs, from->tensors[i].name);
        n += is_one;
    }
    for (int r = 0; n > 0 && r < map->n_rules; r++) {
        bool is_met = map->rules[r].is_optional || map->rules[r].to.n == 0;
        for (int i = 0; !is_met && i < from->n_tensors; i++)
            is_met = is_of_rule(map, &map->rules[r], is_theirs, from->tensors[i].name);
        n -= !is_met;
    }
    return n;
}

/* Names of maps, in their order, without .json. */
static int list_maps(char names[MOST_MAPS][CARRY_MAP_NAME])
{
    char path[MAX_PATH] = "";
    struct dirent **entries;
    int n = 0;
    const ssize_t bytes = readlink("/proc/self/exe", path, sizeof path / 2);
    char *slash = bytes > 0 ? strrchr(path, '/') : NULL;
    snprintf(slash ? slash : path, sizeof path / 2, "%s/../share/weft/maps", slash ? "" : ".");
    const int n_entries = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n_entries; i++) {
        const char *dot = strrchr(entries[i]->d_name, '.');
        const size_t letters = dot ? (size_t)(dot - entries[i]->d_name) : 0;
        if (letters > 0 && letters < CARRY_MAP_NAME && strcmp(dot, ".json") == 0 && n < MOST_MAPS)
            snprintf(names[n++], CARRY_MAP_NAME, "%.*s", (int)letters, entries[i]->d_name);
        free(entries[i]);
    }
    if (n_entries >= 0) free(entries);
    return n;
}

weft_status carry_map_for(const source *from, bool is_theirs, char name[CARRY_MAP_NAME],
                          weft_error *error)
{
    char names[MOST_MAPS][CARRY_MAP_NAME], list[MOST_MAPS * CARRY_MAP_NAME] = "";
    int64_t best = 0;
    const int n = list_maps(names);
    *name = 0;
    for (int i = 0; i < n; i++) {
        carry_map *map = NULL;
        WEFT_TRY(carry_map_read(names[i], &(carry_said){.sizes = ""}, &map, error));
        const int64_t own = score(map, from, is_theirs);
        carry_map_destroy(&map);
        if (own > best) memcpy(name, names[i], CARRY_MAP_NAME);
        if (own > best) best = own;
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    if (*name) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.200s: its tensors, as %.100s, are not called as any map has them (%.200s); "
                     "give one of your own: --map FILE",
                     from->path, from->n_tensors > 0 ? from->tensors[0].name : "(none)", list);
}
