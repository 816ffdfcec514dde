/* build_id: which build of Weft this process runs, as the linker has marked it: a copy on one host may be older. */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "build_id.h"

typedef struct search {
    const void *inside; /* of the object that is wanted */
    uint64_t id;
} search;

static bool holds(const struct dl_phdr_info *object, const void *address)
{
    const uintptr_t at = (uintptr_t)address;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && at >= begin && at < begin + part->p_memsz) return true;
    }
    return false;
}

/* A note is a name and some bytes, each filled up to 4; the build's is of "GNU" and of type 3. */
static uint64_t find_note(const char *notes, size_t bytes)
{
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
        ElfW(Nhdr) note;
        memcpy(&note, notes + at, sizeof note);
        const size_t name = at + sizeof note, data = name + (note.n_namesz + 3) / 4 * 4;
        if (data + note.n_descsz > bytes) return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + name, "GNU", 4) == 0)
            return weft_digest(0, notes + data, note.n_descsz);
        at = data + (note.n_descsz + 3) / 4 * 4;
    }
    return 0;
}

static int look_at(struct dl_phdr_info *object, size_t bytes, void *argument)
{
    search *s = argument;
    (void)bytes;
    if (!holds(object, s->inside)) return 0;
    for (int i = 0; i < object->dlpi_phnum && s->id == 0; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_NOTE)
            s->id = find_note((const char *)(object->dlpi_addr + part->p_vaddr), part->p_memsz);
    }
    return 1;
}

uint64_t weft_build_id(void)
{
    search s = {.inside = (const void *)(uintptr_t)&weft_build_id};
    dl_iterate_phdr(look_at, &s);
    return s.id;
}
