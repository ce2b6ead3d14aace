/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/row_ids.h"

#include <inttypes.h>
#include <string.h>

#include "format/rowids.h"
#include "merge/report.h"
#include "util/cleanup.h"

struct pair {
    uint64_t from, created, to; /* `created`: 0 where it makes no difference */
};

struct pairs {
    struct pair *items; /* sorted by `from` and `created`, each once, after settle() */
    size_t count, capacity;
};

struct ids {
    const struct lfs_merge_input *in;
    const struct lfs_match *matches;
    size_t n_matches;
    struct lfs_plan *plan;
    struct pairs known; /* id of a row in theirs -> in ours, for rows of fragments that both have */
    struct pairs since; /* the same for fragments that the base does not have, by the version that created the row too */
    struct pairs lost;  /* ids in theirs of rows of base fragments that ours has no more, and whose id there is not known */
    struct pairs later; /* ids that ours gave out after the base, in fragments of its own */
    struct pairs fresh; /* id that theirs gave out -> new id */
    uint64_t version;   /* of the merge */
    bool keep;          /* theirs' ids are ours' next ones: a fast-forward */
    struct lfs_error *err;
};

/* --- sorted pairs --- */

static errint_t add_created(struct ids *s, struct pairs *list, uint64_t from, uint64_t created, uint64_t to) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 256;
        struct pair *grown = LFS_NEW_ARRAY(s->plan->arena, struct pair, capacity);
        if (!grown)
            return lfs_fail_nomem(s->err);
        if (list->count)
            memcpy(grown, list->items, list->count * sizeof *grown);
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = (struct pair){from, created, to};
    return 0;
}

static errint_t add_pair(struct ids *s, struct pairs *list, uint64_t from, uint64_t to) {
    return add_created(s, list, from, 0, to);
}

static int by_from(const void *a, const void *b) {
    const struct pair *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->created < y->created ? -1 : x->created > y->created;
}

static void settle(struct pairs *list) {
    size_t kept = 0;
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_from);
    for (size_t i = 0; i < list->count; i++)
        if (i == 0 || by_from(&list->items[i], &list->items[i - 1]) != 0)
            list->items[kept++] = list->items[i];
    list->count = kept;
}

static const struct pair *find_created(const struct pairs *list, uint64_t from, uint64_t created) {
    struct pair key = {from, created, 0};
    return list->count ? bsearch(&key, list->items, list->count, sizeof key, by_from) : NULL;
}

static const struct pair *find(const struct pairs *list, uint64_t from) { return find_created(list, from, 0); }

/* --- what is known of theirs' rows --- */

static bool same_bytes(const LanceFragment *a, const LanceFragment *b) {
    return a->row_id_sequence_case == b->row_id_sequence_case && a->inline_row_ids.len == b->inline_row_ids.len &&
           (a->inline_row_ids.len == 0 ||
            memcmp(a->inline_row_ids.data, b->inline_row_ids.data, a->inline_row_ids.len) == 0);
}

static errint_t decode(struct ids *s, const LanceFragment *f, uint64_t **out) {
    return lfs_row_ids_of(f, s->plan->arena, "a fragment's row ids", out, s->err);
}

/* The base fragment with the ids that theirs knows its rows by; NULL where that cannot be told. */
static const LanceFragment *as_theirs(const struct ids *s, const struct lfs_match *x) {
    return x->theirs ? x->theirs : s->in->base_is_theirs ? x->base : NULL;
}

/* Both came to the fragment since the base. An id that theirs gave out since then can be another row's by now. */
static errint_t learn_since(struct ids *s, const LanceFragment *theirs, const uint64_t *from, const uint64_t *to) {
    uint64_t *created;
    LFS_TRY(lfs_row_created_of(theirs, s->plan->arena, "a fragment's versions", &created, s->err));
    for (uint64_t i = 0; i < theirs->physical_rows; i++)
        LFS_TRY(add_created(s, &s->since, from[i], created[i], to[i]));
    return 0;
}

/* One row, two ids: an earlier merge renumbered it. Where the base's ids are theirs' too, rows that have one id need not
 * be noted. */
static errint_t learn(struct ids *s, const struct lfs_match *x) {
    const LanceFragment *theirs = as_theirs(s, x);
    uint64_t *from, *to;
    if (!theirs || (x->base && same_bytes(theirs, x->ours) && s->in->base_is_theirs))
        return 0;
    s->keep = s->keep && same_bytes(theirs, x->ours);
    LFS_TRY(decode(s, theirs, &from));
    LFS_TRY(decode(s, x->ours, &to));
    for (uint64_t i = 0; i < x->ours->physical_rows; i++)
        LFS_TRY(add_pair(s, &s->known, from[i], to[i]));
    return x->base ? 0 : learn_since(s, theirs, from, to);
}

/* A base fragment that ours has no more: its rows went on, or not, into fragments of ours alone. Where the base lies on ours'
 * line they have the ids there that they have in the base, unless ours gave those out anew (Lance 10 does after a restore). */
static errint_t follow(struct ids *s, const struct lfs_match *x) {
    const LanceFragment *theirs = as_theirs(s, x);
    uint64_t *from, *to;
    if (!theirs)
        return 0;
    LFS_TRY(decode(s, theirs, &from));
    LFS_TRY(decode(s, x->base, &to));
    for (uint64_t i = 0; i < x->base->physical_rows; i++) {
        bool same = s->in->base_is_ours && !find(&s->later, to[i]);
        LFS_TRY(add_pair(s, same ? &s->known : &s->lost, from[i], to[i]));
    }
    return 0;
}

static errint_t note_later(struct ids *s, const LanceFragment *ours) {
    uint64_t *ids, *created;
    LFS_TRY(decode(s, ours, &ids));
    LFS_TRY(lfs_row_created_of(ours, s->plan->arena, "a fragment's versions", &created, s->err));
    for (uint64_t i = 0; i < ours->physical_rows; i++)
        if (created[i] > s->in->base->number)
            LFS_TRY(add_pair(s, &s->later, ids[i], 0));
    return 0;
}

static errint_t follow_all(struct ids *s) {
    for (size_t i = 0; i < s->n_matches; i++)
        if (s->matches[i].ours && !s->matches[i].base && s->in->base_is_ours)
            LFS_TRY(note_later(s, s->matches[i].ours));
    settle(&s->later);
    for (size_t i = 0; i < s->n_matches; i++)
        if (s->matches[i].base && !s->matches[i].ours)
            LFS_TRY(follow(s, &s->matches[i]));
    return 0;
}

static bool brings_fragments(const struct lfs_plan *plan) {
    for (size_t i = 0; i < plan->n_fragments; i++)
        if (plan->fragments[i].is_new)
            return true;
    return false;
}

static errint_t learn_all(struct ids *s) {
    for (size_t i = 0; i < s->n_matches; i++) {
        const struct lfs_match *x = &s->matches[i];
        if (x->ours && (x->base || x->theirs))
            LFS_TRY(learn(s, x));
        if (x->base && !x->theirs && !s->in->base_is_theirs && !s->in->without_history && brings_fragments(s->plan))
            return lfs_report_refusal(s->plan, s->err,
                                      "%s rewrote fragment %" PRIu64 " of a line with other stable row ids: its rows cannot be "
                                      "told by their ids, not merged",
                                      s->in->theirs_name, x->base->id);
    }
    if (!s->in->ours_is_base && brings_fragments(s->plan))
        LFS_TRY(follow_all(s));
    settle(&s->known);
    settle(&s->since);
    settle(&s->lost);
    return 0;
}

/* --- theirs' new fragments --- */

/* Does the base hold that row, or a fragment that both sides have by now? Ids of another line say nothing; of theirs' own, Lance 10 gives some out again after a
 * restore, and then only the created-at version tells. */
static bool is_old(const struct ids *s, uint64_t id, uint64_t created) {
    if (!s->in->base_is_theirs)
        return find(&s->known, id) || find(&s->lost, id);
    if (find_created(&s->since, id, created))
        return true;
    return id < s->in->base->manifest.message->next_row_id && created <= s->in->base->number;
}

static errint_t collect_fresh(struct ids *s, const LanceFragment *f) {
    uint64_t *ids, *created;
    LFS_TRY(decode(s, f, &ids));
    LFS_TRY(lfs_row_created_of(f, s->plan->arena, "a fragment's versions", &created, s->err));
    for (uint64_t i = 0; i < f->physical_rows; i++)
        if (!is_old(s, ids[i], created[i]))
            LFS_TRY(add_pair(s, &s->fresh, ids[i], 0));
    return 0;
}

static errint_t result_id(struct ids *s, uint64_t id, uint64_t created, uint64_t *out) {
    *out = id;
    if (s->keep)
        return 0;
    if (!is_old(s, id, created)) {
        *out = find(&s->fresh, id)->to;
        return 0;
    }
    const struct pair *known = find_created(&s->since, id, created);
    known = known ? known : find(&s->known, id);
    if (known)
        *out = known->to;
    else if (find(&s->lost, id))
        return lfs_report_refusal(s->plan, s->err,
                                  "row %" PRIu64 " was moved on both sides, and its stable id cannot be traced: not merged",
                                  id);
    return 0;
}

static errint_t pack(struct ids *s, const uint64_t *entries, size_t n, bool versions, ProtobufCBinaryData *out) {
    LFS_AUTO_BUF bytes = {0};
    LFS_TRY(versions ? lfs_row_versions_encode(entries, n, &bytes, s->err)
                     : lfs_row_ids_encode(entries, n, &bytes, s->err));
    out->len = bytes.length;
    out->data = lfs_memdup(s->plan->arena, bytes.data, bytes.length);
    return out->data ? 0 : lfs_fail_nomem(s->err);
}

/* What the base held already keeps its versions; everything else came, or was changed, with the merge. */
static errint_t bring(struct ids *s, struct lfs_plan_fragment *f) {
    uint64_t n = f->record->physical_rows, *ids, *created, *updated;
    LFS_TRY(decode(s, f->record, &ids));
    LFS_TRY(lfs_row_created_of(f->record, s->plan->arena, "a fragment's versions", &created, s->err));
    LFS_TRY(lfs_row_updated_of(f->record, s->plan->arena, "a fragment's versions", &updated, s->err));
    for (uint64_t i = 0; i < n && !s->plan->refusal; i++) {
        bool old = is_old(s, ids[i], created[i]);
        LFS_TRY(result_id(s, ids[i], created[i], &ids[i]));
        created[i] = old && created[i] <= s->version ? created[i] : s->version;
        updated[i] = old && s->in->base_is_theirs && updated[i] <= s->in->base->number ? updated[i] : s->version;
    }
    LFS_TRY(pack(s, ids, n, false, &f->row_ids));
    LFS_TRY(pack(s, created, n, true, &f->created_versions));
    return pack(s, updated, n, true, &f->updated_versions);
}

/* A fragment that got another column: every row of it was updated, as stock says of an added column. */
static errint_t touch(struct ids *s, struct lfs_plan_fragment *f) {
    uint64_t n = f->record->physical_rows, *updated;
    LFS_TRY(lfs_row_updated_of(f->record, s->plan->arena, "a fragment's versions", &updated, s->err));
    for (uint64_t i = 0; i < n; i++)
        updated[i] = s->version;
    return pack(s, updated, n, true, &f->updated_versions);
}

static errint_t number_fresh(struct ids *s) {
    const struct lfs_plan *plan = s->plan;
    uint64_t next = s->in->ours->manifest.message->next_row_id, theirs = s->in->theirs->manifest.message->next_row_id;
    if (s->keep) {
        s->plan->next_row_id = theirs > next ? theirs : next;
        return 0;
    }
    for (size_t i = 0; i < plan->n_fragments; i++)
        if (plan->fragments[i].is_new)
            LFS_TRY(collect_fresh(s, plan->fragments[i].record));
    settle(&s->fresh);
    for (size_t i = 0; i < s->fresh.count; i++)
        s->fresh.items[i].to = next++;
    s->plan->next_row_id = next;
    return 0;
}

errint_t lfs_merge_row_ids(const struct lfs_merge_input *input, const struct lfs_match *matches, size_t n_matches,
                           struct lfs_plan *plan, struct lfs_error *err) {
    struct ids s = {.in = input, .matches = matches, .n_matches = n_matches, .plan = plan, .err = err,
                    .version = input->ours->number + 1, .keep = input->ours_is_base && input->base_is_theirs};
    bool ours = lfs_manifest_has_stable_row_ids(input->ours->manifest.message);
    plan->next_row_id = input->ours->manifest.message->next_row_id;
    if (ours != lfs_manifest_has_stable_row_ids(input->theirs->manifest.message))
        return lfs_report_refusal(plan, err, "only one of %s and %s has stable row ids: not merged", input->ours_name,
                                  input->theirs_name);
    if (!ours || plan->refusal || plan->n_conflicts)
        return 0;
    LFS_TRY(learn_all(&s));
    if (plan->refusal)
        return 0;
    LFS_TRY(number_fresh(&s));
    for (size_t i = 0; i < plan->n_fragments && !plan->refusal; i++) {
        if (plan->fragments[i].is_new)
            LFS_TRY(bring(&s, &plan->fragments[i]));
        else if (plan->fragments[i].files)
            LFS_TRY(touch(&s, &plan->fragments[i]));
    }
    return 0;
}
