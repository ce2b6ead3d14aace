/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_builder.h"

#include <ctype.h>
#include <inttypes.h>

#include "merge/field_match.h"
#include "merge/match.h"
#include "util/map.h"

enum { MAX_FRAGMENTS = 256, MAX_FIELDS = 64, MAX_ENTRIES = 32, MAX_WORDS = 32 };

struct lab_vector {
    uint64_t id;
    roaring_bitmap_t *rows;
    struct lab_vector *next;
};

/* A state while its text is read. */
struct draft {
    struct lab *lab;
    struct lfs_version *version, *before;
    LanceManifest *m;
    char *groups[MAX_WORDS]; /* of a rewrite, read when the state is complete */
    size_t n_groups;
    bool brought, forgotten;
};

static void *must(void *memory) {
    assert_non_null(memory);
    return memory;
}

/* --- words --- */

/* The next word of a text, cut off; NULL at the end. */
static char *next_word(char **rest) {
    char *p = *rest;
    while (isspace((unsigned char)*p))
        p++;
    if (!*p)
        return NULL;
    char *start = p;
    while (*p && !isspace((unsigned char)*p))
        p++;
    if (*p)
        *p++ = 0;
    *rest = p;
    return start;
}

static char *need_word(char **rest, const char *what) {
    char *word = next_word(rest);
    if (!word)
        fail_msg("a statement lacks its %s", what);
    return word;
}

static int64_t need_number(char **rest, const char *what) {
    char *word = need_word(rest, what), *end;
    int64_t value = strtoll(word, &end, 10);
    if (*end)
        fail_msg("%s \"%s\" is no number", what, word);
    return value;
}

static roaring_bitmap_t *read_set(const char *text) {
    roaring_bitmap_t *set = must(roaring_bitmap_create());
    if (strcmp(text, "none") == 0)
        return set;
    for (const char *p = text; *p;) {
        char *end;
        uint64_t from = strtoull(p, &end, 10), to = from;
        if (end == p)
            fail_msg("\"%s\" is no set", text);
        if (*end == '-')
            to = strtoull(end + 1, &end, 10);
        roaring_bitmap_add_range(set, from, to + 1);
        p = *end == ',' ? end + 1 : end;
    }
    return set;
}

/* --- deletion vectors --- */

static struct lab_vector *find_vector(const struct lab *lab, uint64_t id) {
    struct lab_vector *v = lab->vectors;
    while (v && v->id != id)
        v = v->next;
    return v;
}

static errint_t read_deletions(void *context, const struct lfs_version *version, const LanceFragment *fragment,
                               roaring_bitmap_t **out, struct lfs_error *err) {
    struct lab *lab = context;
    *out = NULL;
    assert_non_null(version);
    if (!fragment->deletion_file) {
        *out = must(roaring_bitmap_create());
        return 0;
    }
    lab->deletions_read++;
    const struct lab_vector *v = find_vector(lab, fragment->deletion_file->id);
    if (!v)
        return lfs_fail(err, LFS_E_NOT_FOUND, "the deletion file of fragment %" PRIu64 " is gone", fragment->id);
    if (!roaring_bitmap_is_empty(v->rows) && roaring_bitmap_maximum(v->rows) >= fragment->physical_rows)
        return lfs_fail(err, LFS_E_CORRUPT, "the deletion file of fragment %" PRIu64 " names a row that is not there",
                        fragment->id);
    *out = must(roaring_bitmap_copy(v->rows));
    return 0;
}

static errint_t read_history(void *context, enum lfs_side side, const struct lfs_history **out, struct lfs_error *err) {
    static const struct lfs_history none = {.complete = true};
    struct lab *lab = context;
    (void)err;
    *out = side == LFS_OURS ? &lab->ours : side == LFS_THEIRS ? &lab->theirs : &none;
    return 0;
}

/* In made-up states an id is one column, everywhere where its name is the same, and on both sides of the base anyway; what
 * is new on both sides is two. Another id under the name of a column that went is that column with another type. */
static errint_t trace(void *context, struct lfs_column_trace *list, size_t n_first, size_t n, struct lfs_error *err) {
    const struct lab *lab = context;
    const struct lfs_version *sides[] = {lab->input.base, lab->input.ours, lab->input.theirs};
    (void)err;
    for (size_t i = 0; i < n; i++)
        list[i].unknown = false;
    for (size_t i = n_first; i < n; i++)
        for (size_t k = 0; k < n_first; k++) {
            const LanceField *old = lfs_field_by_id(lab->input.base->manifest.message, list[k].id);
            const LanceField *now = lfs_field_by_id(sides[list[i].side]->manifest.message, list[i].id);
            bool same_id = old && old->id == now->id, same_name = old && strcmp(old->name, now->name) == 0;
            if (!(same_id && (same_name || list[k].side == LFS_BASE)) && !(same_name && !same_id))
                continue;
            list[i].same_as = k;
            list[i].retyped = !same_id;
        }
    return 0;
}

/* Each commit writes a file of its own, also where another commit wrote the same rows. */
static LanceDeletionFile *deletion_file(struct lab *lab, const struct lfs_version *version, const char *path,
                                        roaring_bitmap_t *rows, const char *how) {
    uint64_t n = roaring_bitmap_get_cardinality(rows), id = lfs_hash(path, strlen(path), version->number);
    id = lfs_hash(version->dir, strlen(version->dir), id);
    if (how && strcmp(how, "wrong") == 0)
        roaring_bitmap_add(rows, 1000000);
    LanceDeletionFile *f = must(LFS_NEW(lab->arena, LanceDeletionFile));
    lance__table__deletion_file__init(f);
    f->has_file_type = f->has_id = f->has_read_version = f->has_num_deleted_rows = true;
    f->file_type = LANCE__TABLE__DELETION_FILE__DELETION_FILE_TYPE__BITMAP;
    f->id = id;
    f->read_version = 1;
    f->num_deleted_rows = n;
    assert_null(find_vector(lab, id));
    if (how && strcmp(how, "gone") == 0) {
        roaring_bitmap_free(rows);
    } else {
        struct lab_vector *v = must(LFS_NEW(lab->arena, struct lab_vector));
        *v = (struct lab_vector){id, rows, lab->vectors};
        lab->vectors = v;
    }
    return f;
}

/* --- fields --- */

static size_t field_index(const LanceManifest *m, int32_t id) {
    size_t i = 0;
    while (i < m->n_fields && m->fields[i]->id != id)
        i++;
    return i;
}

/* A field that may be changed: states share their messages. */
static LanceField *edit_field(struct draft *d, int32_t id) {
    size_t at = field_index(d->m, id);
    if (at == d->m->n_fields)
        fail_msg("there is no field %d", id);
    return d->m->fields[at] = must(lfs_memdup(d->lab->arena, d->m->fields[at], sizeof(LanceField)));
}

static bool is_parent(const LanceManifest *m, int32_t id) {
    for (size_t i = 0; i < m->n_fields; i++)
        if (m->fields[i]->parent_id == id)
            return true;
    return false;
}

static void read_field(struct draft *d, char *rest) {
    LanceManifest *m = d->m;
    int32_t id = (int32_t)need_number(&rest, "field id");
    size_t at = field_index(m, id);
    LanceField *f = must(LFS_NEW(d->lab->arena, LanceField));
    lance__file__field__init(f);
    f->has_id = f->has_parent_id = f->has_nullable = true;
    f->id = id;
    f->parent_id = -1;
    f->name = need_word(&rest, "field name");
    f->logical_type = need_word(&rest, "field type");
    for (char *word; (word = next_word(&rest));) {
        if (strcmp(word, "null") == 0)
            f->nullable = true;
        else if (strcmp(word, "key") == 0)
            f->has_unenforced_primary_key = f->unenforced_primary_key = true;
        else if (strcmp(word, "under") == 0)
            f->parent_id = (int32_t)need_number(&rest, "parent");
        else if (strcmp(word, "ext") == 0)
            f->extension_name = need_word(&rest, "extension");
        else
            fail_msg("\"%s\" is nothing that a field has", word);
    }
    if (at < m->n_fields) {
        f->n_metadata = m->fields[at]->n_metadata;
        f->metadata = m->fields[at]->metadata;
    } else {
        assert_true(m->n_fields < MAX_FIELDS);
        m->n_fields++;
    }
    m->fields[at] = f;
}

static void remove_field(struct draft *d, char *rest) {
    size_t at = field_index(d->m, (int32_t)need_number(&rest, "field id"));
    assert_true(at < d->m->n_fields);
    memmove(d->m->fields + at, d->m->fields + at + 1, (d->m->n_fields - at - 1) * sizeof *d->m->fields);
    d->m->n_fields--;
}

static void change_meta(struct draft *d, char *rest, bool removed) {
    LanceField *f = edit_field(d, (int32_t)need_number(&rest, "field id"));
    char *key = need_word(&rest, "key"), *value = strchr(key, '=');
    Lance__File__MetadataEntry **list =
        must(LFS_NEW_ARRAY(d->lab->arena, Lance__File__MetadataEntry *, f->n_metadata + 1));
    size_t n = 0;
    if (value)
        *value++ = 0;
    for (size_t i = 0; i < f->n_metadata; i++)
        if (strcmp(f->metadata[i]->key, key))
            list[n++] = f->metadata[i];
    if (!removed) {
        Lance__File__MetadataEntry *e = must(LFS_NEW(d->lab->arena, Lance__File__MetadataEntry));
        lance__file__metadata_entry__init(e);
        assert_non_null(value);
        e->key = key;
        e->has_value = true;
        e->value = (ProtobufCBinaryData){strlen(value), (uint8_t *)value};
        list[n++] = e;
    }
    f->metadata = list;
    f->n_metadata = n;
}

/* --- fragments --- */

static size_t fragment_index(const LanceManifest *m, const char *path) {
    size_t i = 0;
    while (i < m->n_fragments && strcmp(m->fragments[i]->files[0]->path, path))
        i++;
    return i;
}

static LanceFragment *find_fragment(const LanceManifest *m, const char *path) {
    size_t at = fragment_index(m, path);
    if (at == m->n_fragments)
        fail_msg("there is no fragment %s", path);
    return m->fragments[at];
}

static LanceFragment *edit_fragment(struct draft *d, const char *path) {
    LanceFragment *f = must(lfs_memdup(d->lab->arena, find_fragment(d->m, path), sizeof *f));
    return d->m->fragments[fragment_index(d->m, path)] = f;
}

/* "A:0,1" or "A". */
static LanceDataFile *read_file_text(struct draft *d, char *text) {
    struct lab *lab = d->lab;
    LanceDataFile *f = must(LFS_NEW(lab->arena, LanceDataFile));
    char *ids = strchr(text, ':');
    lance__table__data_file__init(f);
    f->fields = must(LFS_NEW_ARRAY(lab->arena, int32_t, MAX_FIELDS));
    f->column_indices = must(LFS_NEW_ARRAY(lab->arena, int32_t, MAX_FIELDS));
    if (ids)
        *ids++ = 0;
    f->path = text;
    for (size_t i = 0; !ids && i < d->m->n_fields; i++)
        if (!is_parent(d->m, d->m->fields[i]->id))
            f->fields[f->n_fields++] = d->m->fields[i]->id;
    for (char *end; ids && *ids; ids = *end ? end + 1 : end)
        f->fields[f->n_fields++] = (int32_t)strtol(ids, &end, 10);
    for (size_t i = 0; i < f->n_fields; i++)
        f->column_indices[i] = (int32_t)i;
    f->n_column_indices = f->n_fields;
    f->has_file_major_version = f->has_file_minor_version = f->has_file_size_bytes = true;
    f->file_major_version = 2;
    f->file_size_bytes = 1000 + strlen(text);
    return f;
}

static void read_files(struct draft *d, LanceFragment *f, char *text) {
    char *save = NULL;
    f->files = must(LFS_NEW_ARRAY(d->lab->arena, LanceDataFile *, MAX_WORDS));
    f->n_files = 0;
    for (char *one = strtok_r(text, "+", &save); one; one = strtok_r(NULL, "+", &save))
        f->files[f->n_files++] = read_file_text(d, one);
}

static void set_dead(struct draft *d, LanceFragment *f, char *rest) {
    roaring_bitmap_t *rows = read_set(need_word(&rest, "set"));
    const char *how = next_word(&rest);
    if (roaring_bitmap_is_empty(rows)) {
        roaring_bitmap_free(rows);
        f->deletion_file = NULL;
        return;
    }
    f->deletion_file = deletion_file(d->lab, d->version, f->files[0]->path, rows, how);
}

static void read_fragment(struct draft *d, char *rest) {
    LanceManifest *m = d->m;
    LanceFragment *f = must(LFS_NEW(d->lab->arena, LanceFragment));
    lance__table__data_fragment__init(f);
    f->has_id = f->has_physical_rows = true;
    f->id = (uint64_t)need_number(&rest, "fragment id");
    read_files(d, f, need_word(&rest, "files"));
    f->physical_rows = (uint64_t)need_number(&rest, "rows");
    if (fragment_index(m, f->files[0]->path) < m->n_fragments)
        fail_msg("fragment %s is there already", f->files[0]->path);
    if (next_word(&rest))
        set_dead(d, f, rest);
    assert_true(m->n_fragments < MAX_FRAGMENTS);
    m->fragments[m->n_fragments++] = f;
    if (!m->has_max_fragment_id || m->max_fragment_id < f->id)
        m->max_fragment_id = (uint32_t)f->id;
    m->has_max_fragment_id = true;
}

static void remove_fragment(struct draft *d, char *rest) {
    const char *path = need_word(&rest, "fragment");
    find_fragment(d->m, path);
    size_t at = fragment_index(d->m, path);
    memmove(d->m->fragments + at, d->m->fragments + at + 1, (d->m->n_fragments - at - 1) * sizeof *d->m->fragments);
    d->m->n_fragments--;
}

static int by_id(const void *a, const void *b) {
    uint64_t x = (*(LanceFragment *const *)a)->id, y = (*(LanceFragment *const *)b)->id;
    return x < y ? -1 : x > y;
}

/* --- maps --- */

static void change_entry(struct draft *d, LanceStringEntry **list, size_t *n, char *rest, bool removed) {
    char *key = need_word(&rest, "key"), *value = strchr(key, '=');
    if (value)
        *value++ = 0;
    size_t at = 0;
    while (at < *n && strcmp(list[at]->key, key))
        at++;
    if (removed) {
        assert_true(at < *n);
        memmove(list + at, list + at + 1, (*n - at - 1) * sizeof *list);
        --*n;
        return;
    }
    LanceStringEntry *e = must(LFS_NEW(d->lab->arena, LanceStringEntry));
    lance__table__string_entry__init(e);
    assert_non_null(value);
    e->key = key;
    e->value = value;
    assert_true(at < MAX_ENTRIES);
    list[at] = e;
    *n += at == *n;
}

static void change_schema_entry(struct draft *d, char *rest, bool removed) {
    LanceManifest *m = d->m;
    char *key = need_word(&rest, "key"), *value = strchr(key, '=');
    if (value)
        *value++ = 0;
    size_t at = 0;
    while (at < m->n_schema_metadata && strcmp(m->schema_metadata[at]->key, key))
        at++;
    if (removed) {
        assert_true(at < m->n_schema_metadata);
        memmove(m->schema_metadata + at, m->schema_metadata + at + 1,
                (m->n_schema_metadata - at - 1) * sizeof *m->schema_metadata);
        m->n_schema_metadata--;
        return;
    }
    LanceBytesEntry *e = must(LFS_NEW(d->lab->arena, LanceBytesEntry));
    lance__table__bytes_entry__init(e);
    assert_non_null(value);
    e->key = key;
    e->has_value = true;
    e->value = (ProtobufCBinaryData){strlen(value), (uint8_t *)value};
    assert_true(at < MAX_ENTRIES);
    m->schema_metadata[at] = e;
    m->n_schema_metadata += at == m->n_schema_metadata;
}

/* --- indexes --- */

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* What stands behind an index' uuid. */
static void index_word(struct draft *d, LanceIndex *x, char **rest) {
    char *word = need_word(rest, "field id, type, over or also");
    if (strcmp(word, "type") == 0) {
        x->index_details = must(LFS_NEW(d->lab->arena, Lance__Table__Any));
        lance__table__any__init(x->index_details);
        x->index_details->type_url = need_word(rest, "type");
    } else if (strcmp(word, "over") == 0) {
        roaring_bitmap_t *covered = read_set(need_word(rest, "fragments"));
        size_t size = roaring_bitmap_portable_size_in_bytes(covered);
        x->has_fragment_bitmap = true;
        x->fragment_bitmap = (ProtobufCBinaryData){size, must(lfs_alloc(d->lab->arena, size))};
        roaring_bitmap_portable_serialize(covered, (char *)x->fragment_bitmap.data);
        roaring_bitmap_free(covered);
    } else if (strcmp(word, "also")) {
        x->fields[x->n_fields++] = (int32_t)strtol(word, NULL, 10);
    }
}

static void change_index(struct draft *d, char *rest, bool removed) {
    LanceIndexSection *section = must(LFS_NEW(d->lab->arena, LanceIndexSection)), *old = d->version->manifest.indices;
    char *name = need_word(&rest, "index name");
    lance__table__index_section__init(section);
    section->indices = must(LFS_NEW_ARRAY(d->lab->arena, LanceIndex *, MAX_ENTRIES));
    for (size_t i = 0; old && i < old->n_indices; i++)
        if (strcmp(old->indices[i]->name, name) || (!removed && ends_with(rest, " also")))
            section->indices[section->n_indices++] = old->indices[i];
    if (!removed) {
        LanceIndex *x = must(LFS_NEW(d->lab->arena, LanceIndex));
        lance__table__index_metadata__init(x);
        x->name = name;
        x->uuid = must(LFS_NEW(d->lab->arena, Lance__Table__UUID));
        lance__table__uuid__init(x->uuid);
        char *uuid = need_word(&rest, "uuid");
        x->uuid->has_uuid = true;
        x->uuid->uuid = (ProtobufCBinaryData){strlen(uuid), (uint8_t *)uuid};
        x->fields = must(LFS_NEW_ARRAY(d->lab->arena, int32_t, MAX_FIELDS));
        while (*rest)
            index_word(d, x, &rest);
        assert_true(section->n_indices < MAX_ENTRIES);
        section->indices[section->n_indices++] = x;
    }
    d->version->manifest.indices = section;
}

/* --- transactions --- */

static const struct {
    const char *name;
    Lance__Table__Transaction__OperationCase operation;
} operations[] = {
    {"append", LANCE__TABLE__TRANSACTION__OPERATION_APPEND},
    {"delete", LANCE__TABLE__TRANSACTION__OPERATION_DELETE},
    {"overwrite", LANCE__TABLE__TRANSACTION__OPERATION_OVERWRITE},
    {"index", LANCE__TABLE__TRANSACTION__OPERATION_CREATE_INDEX},
    {"rewrite", LANCE__TABLE__TRANSACTION__OPERATION_REWRITE},
    {"merge", LANCE__TABLE__TRANSACTION__OPERATION_MERGE},
    {"restore", LANCE__TABLE__TRANSACTION__OPERATION_RESTORE},
    {"reserve", LANCE__TABLE__TRANSACTION__OPERATION_RESERVE_FRAGMENTS},
    {"update", LANCE__TABLE__TRANSACTION__OPERATION_UPDATE},
    {"project", LANCE__TABLE__TRANSACTION__OPERATION_PROJECT},
    {"config", LANCE__TABLE__TRANSACTION__OPERATION_UPDATE_CONFIG},
    {"replace-data", LANCE__TABLE__TRANSACTION__OPERATION_DATA_REPLACEMENT},
    {"clone", LANCE__TABLE__TRANSACTION__OPERATION_CLONE},
};

static void read_operation(struct draft *d, char *rest) {
    const char *kind = need_word(&rest, "operation");
    LanceTransaction *t = must(LFS_NEW(d->lab->arena, LanceTransaction));
    lance__table__transaction__init(t);
    for (size_t i = 0; i < COUNT(operations); i++)
        if (strcmp(operations[i].name, kind) == 0)
            t->operation_case = operations[i].operation;
    if (!t->operation_case)
        fail_msg("there is no operation %s", kind);
    t->uuid = must(lfs_sprintf(d->lab->arena, "%s@%" PRIu64, d->version->dir, d->version->number));
    for (char *word; (word = next_word(&rest));) {
        if (strcmp(word, "uuid") == 0)
            t->uuid = need_word(&rest, "uuid");
        else if (strchr(word, '>') && d->n_groups < MAX_WORDS)
            d->groups[d->n_groups++] = word;
        else
            fail_msg("\"%s\" is nothing that an operation has", word);
    }
    d->version->manifest.transaction = t;
}

static LanceFragment **named_fragments(struct lab *lab, const LanceManifest *m, char *names, size_t *n) {
    LanceFragment **list = must(LFS_NEW_ARRAY(lab->arena, LanceFragment *, MAX_WORDS));
    char *save = NULL;
    for (char *one = strtok_r(names, ",", &save); one; one = strtok_r(NULL, ",", &save))
        list[(*n)++] = find_fragment(m, one);
    return list;
}

static void read_groups(struct draft *d) {
    LanceTransaction *t = d->version->manifest.transaction;
    if (!t || t->operation_case != LANCE__TABLE__TRANSACTION__OPERATION_REWRITE)
        return;
    t->rewrite = must(LFS_NEW(d->lab->arena, Lance__Table__Rewrite));
    lance__table__rewrite__init(t->rewrite);
    t->rewrite->groups = must(LFS_NEW_ARRAY(d->lab->arena, Lance__Table__RewriteGroup *, MAX_WORDS));
    for (size_t i = 0; i < d->n_groups; i++) {
        Lance__Table__RewriteGroup *g = must(LFS_NEW(d->lab->arena, Lance__Table__RewriteGroup));
        char *new = strchr(d->groups[i], '>');
        *new ++ = 0;
        lance__table__rewrite_group__init(g);
        g->old_fragments = named_fragments(d->lab, d->before->manifest.message, d->groups[i], &g->n_old_fragments);
        g->new_fragments = named_fragments(d->lab, d->m, new, &g->n_new_fragments);
        t->rewrite->groups[t->rewrite->n_groups++] = g;
    }
}

/* --- states --- */

static void statement(struct draft *d, char *rest) {
    LanceManifest *m = d->m;
    char *word = next_word(&rest);
    if (!word)
        return;
    bool removed = *word == '-';
    word += removed;
    if (strcmp(word, "field") == 0)
        removed ? remove_field(d, rest) : read_field(d, rest);
    else if (strcmp(word, "frag") == 0)
        removed ? remove_fragment(d, rest) : read_fragment(d, rest);
    else if (strcmp(word, "meta") == 0)
        change_meta(d, rest, removed);
    else if (strcmp(word, "config") == 0)
        change_entry(d, m->config, &m->n_config, rest, removed);
    else if (strcmp(word, "table") == 0)
        change_entry(d, m->table_metadata, &m->n_table_metadata, rest, removed);
    else if (strcmp(word, "schema") == 0)
        change_schema_entry(d, rest, removed);
    else if (strcmp(word, "index") == 0)
        change_index(d, rest, removed);
    else if (strcmp(word, "dead") == 0) {
        LanceFragment *f = edit_fragment(d, need_word(&rest, "fragment"));
        set_dead(d, f, rest);
    } else if (strcmp(word, "files") == 0) {
        LanceFragment *f = edit_fragment(d, need_word(&rest, "fragment"));
        read_files(d, f, need_word(&rest, "files"));
    } else if (strcmp(word, "id") == 0) {
        LanceFragment *f = edit_fragment(d, need_word(&rest, "fragment"));
        f->id = (uint64_t)need_number(&rest, "id");
        m->max_fragment_id = f->id > m->max_fragment_id ? (uint32_t)f->id : m->max_fragment_id;
    } else if (strcmp(word, "op") == 0)
        read_operation(d, rest);
    else if (strcmp(word, "format") == 0)
        m->data_format->version = need_word(&rest, "version");
    else if (strcmp(word, "stable") == 0) {
        m->has_reader_feature_flags = m->has_writer_feature_flags = true;
        m->reader_feature_flags = m->writer_feature_flags = LFS_FLAG_STABLE_ROW_IDS;
    } else if (strcmp(word, "max") == 0) {
        m->has_max_fragment_id = true;
        m->max_fragment_id = (uint32_t)need_number(&rest, "id");
    } else if (strcmp(word, "brought") == 0)
        d->brought = true;
    else if (strcmp(word, "forgotten") == 0)
        d->forgotten = true;
    else
        fail_msg("there is no statement \"%s\"", word);
}

static void *grown(struct lab *lab, const void *list, size_t n, size_t most) {
    void **copy = must(LFS_NEW_ARRAY(lab->arena, void *, most + 1));
    assert_true(n <= most);
    if (n)
        memcpy(copy, list, n * sizeof *copy);
    return copy;
}

static LanceManifest *copy_manifest(struct lab *lab, const LanceManifest *before) {
    LanceManifest *m = must(LFS_NEW(lab->arena, LanceManifest));
    if (before)
        *m = *before;
    else
        lance__table__manifest__init(m);
    m->fields = grown(lab, m->fields, m->n_fields, MAX_FIELDS);
    m->fragments = grown(lab, m->fragments, m->n_fragments, MAX_FRAGMENTS);
    m->config = grown(lab, m->config, m->n_config, MAX_ENTRIES);
    m->table_metadata = grown(lab, m->table_metadata, m->n_table_metadata, MAX_ENTRIES);
    m->schema_metadata = grown(lab, m->schema_metadata, m->n_schema_metadata, MAX_ENTRIES);
    m->data_format = must(LFS_NEW(lab->arena, Lance__Table__DataStorageFormat));
    lance__table__data_storage_format__init(m->data_format);
    m->data_format->file_format = "lance";
    m->data_format->version = before ? before->data_format->version : "2.0";
    return m;
}

/* The state after a text; added to a history, if there is one. */
static struct lfs_version *build(struct lab *lab, struct lfs_version *before, const char *text, const char *dir,
                                 struct lfs_history *history) {
    struct lfs_version *v = must(LFS_NEW(lab->arena, struct lfs_version));
    char *copy = must(lfs_strdup(lab->arena, text)), *save = NULL;
    v->dir = dir;
    v->number = before ? before->number + 1 : 1;
    v->manifest.message = copy_manifest(lab, before ? before->manifest.message : NULL);
    v->manifest.indices = before ? before->manifest.indices : NULL;
    v->manifest.message->has_version = true;
    v->manifest.message->version = v->number;
    struct draft d = {.lab = lab, .version = v, .before = before, .m = v->manifest.message};
    for (char *one = strtok_r(copy, ";", &save); one; one = strtok_r(NULL, ";", &save))
        statement(&d, one);
    qsort(d.m->fragments, d.m->n_fragments, sizeof *d.m->fragments, by_id);
    read_groups(&d);
    if (!history)
        return v;
    if (d.forgotten)
        history->complete = false;
    else
        history->steps[history->count++] = (struct lfs_step){.before = before, .after = v, .is_merge = d.brought};
    return v;
}

static struct lfs_version *build_side(struct lab *lab, struct lfs_version *base, const char *const texts[LAB_STEPS],
                                      const char *dir, struct lfs_history *history) {
    struct lfs_version *v = base;
    *history = (struct lfs_history){.complete = true, .capacity = LAB_STEPS};
    history->steps = must(LFS_NEW_ARRAY(lab->arena, struct lfs_step, LAB_STEPS));
    for (size_t i = 0; i < LAB_STEPS && texts[i]; i++)
        v = build(lab, v, texts[i], dir, history);
    return v;
}

/* --- merging --- */

static void run_merge(struct lab *lab) {
    lab->err = (struct lfs_error){0};
    lab->deletions_read = 0;
    lab->result = lfs_merge3(&lab->input, lab->arena, &lab->plan, &lab->err);
    unsigned read = lab->deletions_read; /* the checks read, too */
    if (lab->result == 0)
        lab_check_plan(lab);
    else
        assert_true(lab->err.code != LFS_OK && *lab->err.message);
    lab->deletions_read = read;
}

void lab_run(struct lab *lab, const struct scene *scene) {
    *lab = (struct lab){.arena = must(lfs_arena_new())};
    struct lfs_version *base = build(lab, NULL, scene->base, "", NULL);
    lab->reader = (struct lfs_merge_reader){lab, read_deletions, read_history, trace};
    lab->input = (struct lfs_merge_input){
        .base = base,
        .ours = build_side(lab, base, scene->ours, "", &lab->ours),
        .theirs = build_side(lab, base, scene->theirs, "tree/feature", &lab->theirs),
        .ours_is_base = !scene->ours[0] && !scene->moved,
        .ours_name = "main",
        .theirs_name = "feature",
        .reader = &lab->reader,
        .policy = scene->policy,
    };
    run_merge(lab);
}

void lab_merge(struct lab *lab, const struct lfs_version *base, const struct lfs_version *ours,
               const struct lfs_version *theirs) {
    lfs_plan_release(&lab->plan);
    lab->input.base = base;
    lab->input.ours = ours;
    lab->input.theirs = theirs;
    lab->input.ours_is_base = base == ours;
    run_merge(lab);
}

void lab_free(struct lab *lab) {
    lfs_plan_release(&lab->plan);
    for (struct lab_vector *v = lab->vectors; v; v = v->next)
        roaring_bitmap_free(v->rows);
    lfs_arena_free(lab->arena);
    *lab = (struct lab){0};
}

struct scene scene_swapped(const struct scene *scene) {
    struct scene swapped = *scene;
    memcpy(swapped.ours, scene->theirs, sizeof swapped.ours);
    memcpy(swapped.theirs, scene->ours, sizeof swapped.theirs);
    return swapped;
}
