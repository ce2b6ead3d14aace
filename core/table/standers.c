/* SPDX-License-Identifier: Apache-2.0 */
/* What stands on a branch: see reach.h. */
#include <string.h>

#include "table/location.h"
#include "table/reach.h"
#include "table/references.h"
#include "util/cleanup.h"

struct search {
    struct lfs_dataset *ds;
    const struct lfs_branch *branch;
    struct lfs_arena *arena;
    struct lfs_homes homes;
    struct lfs_map leads; /* base path string -> "yes" or "no": can it mean the branch? */
    struct lfs_stander *list;
    size_t count, capacity;
    struct lfs_error *err;
};

static errint_t add(struct search *s, struct lfs_stander stander) {
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? s->capacity * 2 : 16;
        struct lfs_stander *grown = LFS_NEW_ARRAY(s->arena, struct lfs_stander, capacity);
        if (!grown)
            return lfs_fail_nomem(s->err);
        if (s->count)
            memcpy(grown, s->list, s->count * sizeof *grown);
        s->list = grown;
        s->capacity = capacity;
    }
    s->list[s->count++] = stander;
    return 0;
}

/* Stock's own relation: an identifier that strictly extends the branch's; here direct children only. */
static errint_t add_children(struct search *s) {
    for (size_t i = 0; i < s->homes.lines.n_branches; i++) {
        const struct lfs_branch *b = &s->homes.lines.branches[i];
        if (b->n_forks && b->parent_uuid && *s->branch->uuid && strcmp(b->parent_uuid, s->branch->uuid) == 0)
            LFS_TRY(add(s, (struct lfs_stander){.kind = LFS_STANDS_BRANCH,
                                                .name = b->name,
                                                .version = b->forks[b->n_forks - 1].version}));
    }
    return 0;
}

static errint_t add_tags(struct search *s) {
    struct lfs_tag *tags;
    size_t n;
    LFS_TRY(lfs_dataset_tags(s->ds, s->arena, &tags, &n, NULL, s->err));
    for (size_t i = 0; i < n; i++)
        if (strcmp(tags[i].branch, s->branch->name) == 0)
            LFS_TRY(
                add(s, (struct lfs_stander){.kind = LFS_STANDS_TAG, .name = tags[i].name, .version = tags[i].version}));
    return 0;
}

/* 1 when a base path can mean the branch's directory, or as a plain directory its data or indexes. */
static int leads_here(struct search *s, const char *base) {
    static char yes[] = "yes", no[] = "no";
    const char *known = lfs_map_get(&s->leads, base), **places;
    const char *wanted[] = {s->branch->dir, lfs_join(s->arena, s->branch->dir, "data"),
                            lfs_join(s->arena, s->branch->dir, "_indices")};
    size_t n;
    if (known)
        return known == yes;
    char *own = lfs_strdup(s->arena, base), *answer = no;
    if (!own || !wanted[1] || !wanted[2])
        return lfs_fail_nomem(s->err);
    LFS_TRY(lfs_base_places(s->ds, base, s->arena, &places, &n, s->err));
    for (size_t i = 0; i < n * 3; i++)
        answer = strcmp(places[i / 3], wanted[i % 3]) == 0 ? yes : answer;
    return lfs_map_put(&s->leads, own, answer) ? answer == yes : lfs_fail_nomem(s->err);
}

static errint_t look_at(struct search *s, const char *path, struct lfs_stander *found) {
    struct lfs_references *refs;
    errint_t result = lfs_references_get(s->ds, path, &refs, s->err);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    int leads = 0;
    for (size_t i = 1; leads == 0 && i < refs->n_groups; i++)
        if (refs->groups[i].n_names)
            leads = leads_here(s, refs->groups[i].base);
    if (leads > 0) {
        found->n_manifests++;
        found->version = refs->number > found->version ? refs->number : found->version;
    }
    lfs_references_release(s->ds, refs);
    return leads < 0 ? leads : 0;
}

static errint_t add_home(struct search *s, const struct lfs_home *home) {
    struct lfs_entry *entries;
    size_t n;
    char *versions = lfs_join(s->arena, home->dir, "_versions");
    struct lfs_stander found = {.kind = LFS_STANDS_FILES, .name = home->dir, .home_kind = home->kind};
    if (!versions)
        return lfs_fail_nomem(s->err);
    LFS_TRY(lfs_list_dir(s->ds, versions, s->arena, &entries, &n, s->err));
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(entries[i].name);
        if (length <= 9 || strcmp(entries[i].name + length - 9, ".manifest"))
            continue;
        char *path = lfs_join(s->arena, versions, entries[i].name);
        LFS_TRY(path ? look_at(s, path, &found) : lfs_fail_nomem(s->err));
    }
    return found.n_manifests ? add(s, found) : 0;
}

errint_t lfs_reach_standers(struct lfs_dataset *ds, const struct lfs_branch *branch, struct lfs_arena *arena,
                            struct lfs_stander **out, size_t *n_out, struct lfs_error *err) {
    struct lfs_error own;
    struct search s = {.ds = ds, .branch = branch, .arena = arena, .err = err ? err : &own};
    lfs_map_init(&s.leads, arena);
    LFS_TRY(lfs_homes_find(ds, arena, &s.homes, err));
    LFS_TRY(add_children(&s));
    LFS_TRY(add_tags(&s));
    for (size_t i = 0; i < s.homes.count; i++)
        if (strcmp(s.homes.list[i].dir, branch->dir))
            LFS_TRY(add_home(&s, &s.homes.list[i]));
    *out = s.list;
    *n_out = s.count;
    return 0;
}
