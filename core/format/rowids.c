/* SPDX-License-Identifier: Apache-2.0 */
#include "format/rowids.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "format/flatbuf.h"
#include "format/wire.h"
#include "rowids.pb-c.h"
#include "util/cleanup.h"

typedef Lance__Table__U64Segment Segment;
typedef Lance__Table__EncodedU64Array EncodedArray;
typedef Lance__Table__RowIdSequence IdSequence;
typedef Lance__Table__RowDatasetVersionSequence VersionSequence;
typedef Lance__Table__RowDatasetVersionRun VersionRun;

struct decoder {
    const char *what;
    struct lfs_error *err;
};

static errint_t corrupt(const struct decoder *d, const char *why) {
    return lfs_fail(d->err, LFS_E_CORRUPT, "%s: %s", d->what, why);
}

/* Something without a known arm: one of a later format, or nothing at all. */
static errint_t unknown_kind(const struct decoder *d, const ProtobufCMessage *message, const char *why) {
    if (message->n_unknown_fields)
        return lfs_fail(d->err, LFS_E_UNSUPPORTED, "%s: %s: use a newer lancefs", d->what, why);
    return corrupt(d, why);
}

struct array {
    const uint8_t *bytes;
    size_t count, width;
    uint64_t first; /* what the numbers are offsets from */
};

static uint64_t offset_at(const struct array *a, size_t i) {
    const uint8_t *p = a->bytes + i * a->width;
    return a->width == 2 ? lfs_get_u16le(p) : a->width == 4 ? lfs_get_u32le(p) : lfs_get_u64le(p);
}
static uint64_t value_at(const struct array *a, size_t i) { return a->first + offset_at(a, i); }

static struct array open_array(const EncodedArray *e) {
    switch (e->array_case) {
    case LANCE__TABLE__ENCODED_U64_ARRAY__ARRAY_U16_ARRAY:
        return (struct array){e->u16_array->offsets.data, e->u16_array->offsets.len, 2, e->u16_array->first};
    case LANCE__TABLE__ENCODED_U64_ARRAY__ARRAY_U32_ARRAY:
        return (struct array){e->u32_array->offsets.data, e->u32_array->offsets.len, 4, e->u32_array->first};
    case LANCE__TABLE__ENCODED_U64_ARRAY__ARRAY_U64_ARRAY:
        return (struct array){e->u64_array->values.data, e->u64_array->values.len, 8, 0};
    default: return (struct array){0};
    }
}

/* The array, with its values known to fit in 64 bits. */
static errint_t check_array(const struct decoder *d, const EncodedArray *e, struct array *out) {
    if (!e)
        return corrupt(d, "an array of numbers is missing");
    struct array a = open_array(e);
    if (!a.width)
        return unknown_kind(d, &e->base, "an array of numbers of no known width");
    if (a.count % a.width)
        return corrupt(d, "an array of numbers is cut short");
    a.count /= a.width;
    for (size_t i = 0; i < a.count; i++)
        if (offset_at(&a, i) > UINT64_MAX - a.first)
            return corrupt(d, "a number is too large");
    *out = a;
    return 0;
}

static errint_t check_ascending(const struct decoder *d, const struct array *a) {
    for (size_t i = 1; i < a->count; i++)
        if (value_at(a, i) <= value_at(a, i - 1))
            return corrupt(d, "a sorted array of numbers is out of order");
    return 0;
}

static errint_t check_span(const struct decoder *d, uint64_t start, uint64_t end, uint64_t *out) {
    if (end < start)
        return corrupt(d, "a range ends before it starts");
    *out = end - start;
    return 0;
}

static errint_t check_holes(const struct decoder *d, const Lance__Table__U64Segment__RangeWithHoles *range,
                            uint64_t *out) {
    uint64_t span = 0;
    struct array holes;
    LFS_TRY(check_span(d, range->start, range->end, &span));
    LFS_TRY(check_array(d, range->holes, &holes));
    LFS_TRY(check_ascending(d, &holes));
    if (holes.count && (value_at(&holes, 0) < range->start || value_at(&holes, holes.count - 1) >= range->end))
        return corrupt(d, "a hole lies outside of its range");
    *out = span - holes.count;
    return 0;
}

static bool bit(const uint8_t *bits, uint64_t i) { return bits[i / 8] >> (i % 8) & 1; }

static errint_t check_bitmap(const struct decoder *d, const Lance__Table__U64Segment__RangeWithBitmap *range,
                             uint64_t *out) {
    uint64_t span = 0, count = 0;
    const ProtobufCBinaryData *bits = &range->bitmap;
    LFS_TRY(check_span(d, range->start, range->end, &span));
    if (bits->len != span / 8 + (span % 8 != 0))
        return corrupt(d, "a bitmap is not as long as its range");
    for (size_t i = 0; i < bits->len; i++)
        count += (uint64_t)__builtin_popcount(bits->data[i]);
    if (span % 8 && bits->data[bits->len - 1] >> (span % 8))
        return corrupt(d, "a bitmap has bits behind the end of its range");
    *out = count;
    return 0;
}

/* How many numbers a segment holds. After this it can be spelt out without a look at anything. */
static errint_t check_segment(const struct decoder *d, const Segment *s, uint64_t *out) {
    struct array array = {0};
    switch (s->segment_case) {
    case LANCE__TABLE__U64_SEGMENT__SEGMENT_RANGE: return check_span(d, s->range->start, s->range->end, out);
    case LANCE__TABLE__U64_SEGMENT__SEGMENT_RANGE_WITH_HOLES: return check_holes(d, s->range_with_holes, out);
    case LANCE__TABLE__U64_SEGMENT__SEGMENT_RANGE_WITH_BITMAP: return check_bitmap(d, s->range_with_bitmap, out);
    case LANCE__TABLE__U64_SEGMENT__SEGMENT_SORTED_ARRAY:
        LFS_TRY(check_array(d, s->sorted_array, &array));
        LFS_TRY(check_ascending(d, &array));
        break;
    case LANCE__TABLE__U64_SEGMENT__SEGMENT_ARRAY: LFS_TRY(check_array(d, s->array, &array)); break;
    default: return unknown_kind(d, &s->base, "a segment of no known kind");
    }
    *out = array.count;
    return 0;
}

/* The sum so far, which must not pass the number of rows. */
static errint_t add_rows(const struct decoder *d, uint64_t more, uint64_t physical_rows, uint64_t *sum) {
    if (__builtin_add_overflow(*sum, more, sum) || *sum > physical_rows)
        return lfs_fail(d->err, LFS_E_CORRUPT, "%s has more entries than the fragment has rows (%" PRIu64 ")", d->what,
                        physical_rows);
    return 0;
}

static errint_t new_entries(const struct decoder *d, uint64_t sum, uint64_t physical_rows, struct lfs_arena *arena,
                            uint64_t **out) {
    if (sum != physical_rows)
        return lfs_fail(d->err, LFS_E_CORRUPT, "%s has %" PRIu64 " entries for %" PRIu64 " rows", d->what, sum,
                        physical_rows);
    if (sum > LFS_ROW_IDS_MAX)
        return lfs_fail(d->err, LFS_E_TOO_BIG, "%s has %" PRIu64 " entries, more than %u", d->what, sum,
                        LFS_ROW_IDS_MAX);
    *out = LFS_NEW_ARRAY(arena, uint64_t, sum ? sum : 1);
    return *out ? 0 : lfs_fail_nomem(d->err);
}

static uint64_t *fill_range(uint64_t *to, uint64_t start, uint64_t end) {
    while (start < end)
        *to++ = start++;
    return to;
}

static uint64_t *fill_holes(uint64_t *to, const Lance__Table__U64Segment__RangeWithHoles *range) {
    struct array holes = open_array(range->holes);
    uint64_t next = range->start;
    for (size_t i = 0; i < holes.count / holes.width; i++) {
        to = fill_range(to, next, value_at(&holes, i));
        next = value_at(&holes, i) + 1;
    }
    return fill_range(to, next, range->end);
}

static uint64_t *fill_bitmap(uint64_t *to, const Lance__Table__U64Segment__RangeWithBitmap *range) {
    for (uint64_t i = 0; i < range->end - range->start; i++)
        if (bit(range->bitmap.data, i))
            *to++ = range->start + i;
    return to;
}

static uint64_t *fill_array(uint64_t *to, const EncodedArray *encoded) {
    struct array array = open_array(encoded);
    for (size_t i = 0; i < array.count / array.width; i++)
        *to++ = value_at(&array, i);
    return to;
}

static uint64_t *fill(uint64_t *to, const Segment *s) {
    switch (s->segment_case) {
    case LANCE__TABLE__U64_SEGMENT__SEGMENT_RANGE: return fill_range(to, s->range->start, s->range->end);
    case LANCE__TABLE__U64_SEGMENT__SEGMENT_RANGE_WITH_HOLES: return fill_holes(to, s->range_with_holes);
    case LANCE__TABLE__U64_SEGMENT__SEGMENT_RANGE_WITH_BITMAP: return fill_bitmap(to, s->range_with_bitmap);
    case LANCE__TABLE__U64_SEGMENT__SEGMENT_SORTED_ARRAY: return fill_array(to, s->sorted_array);
    default: return fill_array(to, s->array);
    }
}

errint_t lfs_row_ids_decode(const uint8_t *bytes, size_t length, uint64_t physical_rows, struct lfs_arena *arena,
                            const char *what, uint64_t **out, struct lfs_error *err) {
    struct decoder d = {what, err};
    LFS_AUTO_ARENA *scratch = lfs_arena_new();
    IdSequence *sequence;
    uint64_t sum = 0, count;
    *out = NULL;
    if (!scratch)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_wire_unpack(&lance__table__row_id_sequence__descriptor, bytes, length, scratch, what, &sequence, err));
    for (size_t i = 0; i < sequence->n_segments; i++) {
        LFS_TRY(check_segment(&d, sequence->segments[i], &count));
        LFS_TRY(add_rows(&d, count, physical_rows, &sum));
    }
    LFS_TRY(new_entries(&d, sum, physical_rows, arena, out));
    uint64_t *to = *out;
    for (size_t i = 0; i < sequence->n_segments; i++)
        to = fill(to, sequence->segments[i]);
    return 0;
}

static errint_t check_run(const struct decoder *d, const VersionRun *run, uint64_t *out) {
    return run->span ? check_segment(d, run->span, out) : corrupt(d, "a run of versions has no span");
}

errint_t lfs_row_versions_decode(const uint8_t *bytes, size_t length, uint64_t physical_rows, struct lfs_arena *arena,
                                 const char *what, uint64_t **out, struct lfs_error *err) {
    struct decoder d = {what, err};
    LFS_AUTO_ARENA *scratch = lfs_arena_new();
    VersionSequence *sequence;
    uint64_t sum = 0, count;
    *out = NULL;
    if (!scratch)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_wire_unpack(&lance__table__row_dataset_version_sequence__descriptor, bytes, length, scratch, what,
                            &sequence, err));
    for (size_t i = 0; i < sequence->n_runs; i++) {
        LFS_TRY(check_run(&d, sequence->runs[i], &count));
        LFS_TRY(add_rows(&d, count, physical_rows, &sum));
    }
    LFS_TRY(new_entries(&d, sum, physical_rows, arena, out));
    uint64_t *to = *out;
    for (size_t i = 0; i < sequence->n_runs; i++) {
        LFS_TRY(check_run(&d, sequence->runs[i], &count));
        while (count--)
            *to++ = sequence->runs[i]->version;
    }
    return 0;
}

typedef errint_t decode(const uint8_t *bytes, size_t length, uint64_t physical_rows, struct lfs_arena *arena,
                        const char *what, uint64_t **out, struct lfs_error *err);

enum place { ABSENT, INLINE, EXTERNAL };

static errint_t decode_of(decode *decode_it, enum place place, const ProtobufCBinaryData *bytes, const char *name,
                          const LanceFragment *fragment, struct lfs_arena *arena, const char *what, uint64_t **out,
                          struct lfs_error *err) {
    char full[512];
    *out = NULL;
    snprintf(full, sizeof full, "the %s of fragment %" PRIu64 " of %s", name, fragment->id, what);
    struct decoder d = {full, err};
    if (place == EXTERNAL)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "%s lie in a file of their own", full);
    if (place == INLINE)
        return decode_it(bytes->data, bytes->len, fragment->physical_rows, arena, full, out, err);
    if (decode_it == lfs_row_ids_decode)
        return corrupt(&d, "they are missing");
    LFS_TRY(new_entries(&d, fragment->physical_rows, fragment->physical_rows, arena, out));
    for (uint64_t i = 0; i < fragment->physical_rows; i++)
        (*out)[i] = 1;
    return 0;
}

errint_t lfs_row_ids_of(const LanceFragment *f, struct lfs_arena *arena, const char *what, uint64_t **out,
                        struct lfs_error *err) {
    enum place place = f->row_id_sequence_case == LANCE__TABLE__DATA_FRAGMENT__ROW_ID_SEQUENCE_INLINE_ROW_IDS ? INLINE
                       : f->row_id_sequence_case                                                              ? EXTERNAL
                                                                                                              : ABSENT;
    return decode_of(lfs_row_ids_decode, place, &f->inline_row_ids, "row ids", f, arena, what, out, err);
}

errint_t lfs_row_created_of(const LanceFragment *f, struct lfs_arena *arena, const char *what, uint64_t **out,
                            struct lfs_error *err) {
    enum place place = ABSENT;
    if (f->created_at_version_sequence_case)
        place = f->created_at_version_sequence_case ==
                        LANCE__TABLE__DATA_FRAGMENT__CREATED_AT_VERSION_SEQUENCE_INLINE_CREATED_AT_VERSIONS
                    ? INLINE
                    : EXTERNAL;
    return decode_of(lfs_row_versions_decode, place, &f->inline_created_at_versions, "created-at versions", f, arena,
                     what, out, err);
}

errint_t lfs_row_updated_of(const LanceFragment *f, struct lfs_arena *arena, const char *what, uint64_t **out,
                            struct lfs_error *err) {
    enum place place = ABSENT;
    if (f->last_updated_at_version_sequence_case)
        place = f->last_updated_at_version_sequence_case ==
                        LANCE__TABLE__DATA_FRAGMENT__LAST_UPDATED_AT_VERSION_SEQUENCE_INLINE_LAST_UPDATED_AT_VERSIONS
                    ? INLINE
                    : EXTERNAL;
    return decode_of(lfs_row_versions_decode, place, &f->inline_last_updated_at_versions, "last-updated versions", f,
                     arena, what, out, err);
}

/* A sequence of one segment. Protobuf messages one behind the other are one message with the elements of all. */
static void pack_segment(Segment *segment, struct lfs_buf *out) {
    IdSequence sequence = LANCE__TABLE__ROW_ID_SEQUENCE__INIT;
    sequence.segments = &segment;
    sequence.n_segments = 1;
    lfs_wire_pack(&sequence.base, out);
}

/* 0 is left out, as the engines leave it out. */
static Lance__Table__U64Segment__Range make_range(uint64_t start, uint64_t end) {
    Lance__Table__U64Segment__Range range = LANCE__TABLE__U64_SEGMENT__RANGE__INIT;
    range.has_start = start != 0;
    range.start = start;
    range.has_end = end != 0;
    range.end = end;
    return range;
}

static void pack_range(uint64_t start, uint64_t end, struct lfs_buf *out) {
    Segment segment = LANCE__TABLE__U64_SEGMENT__INIT;
    Lance__Table__U64Segment__Range range = make_range(start, end);
    segment.segment_case = LANCE__TABLE__U64_SEGMENT__SEGMENT_RANGE;
    segment.range = &range;
    pack_segment(&segment, out);
}

/* What is to be known of ids that are not consecutive. */
struct shape {
    uint64_t least, most;
    bool ascending;
    size_t width; /* bytes of an offset from the least */
};

static struct shape shape_of(const uint64_t *ids, size_t n) {
    struct shape s = {ids[0], ids[0], true, 8};
    for (size_t i = 1; i < n; i++) {
        s.ascending = s.ascending && ids[i] > ids[i - 1];
        s.least = ids[i] < s.least ? ids[i] : s.least;
        s.most = ids[i] > s.most ? ids[i] : s.most;
    }
    if (s.most - s.least <= UINT32_MAX)
        s.width = s.most - s.least <= UINT16_MAX ? 2 : 4;
    return s;
}

static void pack_bitmap(const struct shape *s, const uint64_t *ids, size_t n, struct lfs_buf *out) {
    LFS_AUTO_BUF bits = {0};
    Segment segment = LANCE__TABLE__U64_SEGMENT__INIT;
    Lance__Table__U64Segment__RangeWithBitmap range = LANCE__TABLE__U64_SEGMENT__RANGE_WITH_BITMAP__INIT;
    size_t size = (size_t)((s->most - s->least) / 8 + 1);
    uint8_t *p = lfs_buf_extend(&bits, size);
    if (!p) {
        out->failed = true;
        return;
    }
    memset(p, 0, size);
    for (size_t i = 0; i < n; i++)
        p[(ids[i] - s->least) / 8] |= (uint8_t)(1u << ((ids[i] - s->least) % 8));
    range.has_start = s->least != 0;
    range.start = s->least;
    range.has_end = true;
    range.end = s->most + 1;
    range.has_bitmap = true;
    range.bitmap = (ProtobufCBinaryData){size, p};
    segment.segment_case = LANCE__TABLE__U64_SEGMENT__SEGMENT_RANGE_WITH_BITMAP;
    segment.range_with_bitmap = &range;
    pack_segment(&segment, out);
}

static void add_offset(struct lfs_buf *bytes, uint64_t value, size_t width) {
    uint8_t little[8];
    for (size_t i = 0; i < width; i++)
        little[i] = (uint8_t)(value >> (8 * i));
    lfs_buf_add(bytes, little, width);
}

static void pack_array(const struct shape *s, const uint64_t *ids, size_t n, struct lfs_buf *out) {
    LFS_AUTO_BUF bytes = {0};
    Segment segment = LANCE__TABLE__U64_SEGMENT__INIT;
    EncodedArray array = LANCE__TABLE__ENCODED_U64_ARRAY__INIT;
    Lance__Table__EncodedU64Array__U16Array u16 = LANCE__TABLE__ENCODED_U64_ARRAY__U16_ARRAY__INIT;
    Lance__Table__EncodedU64Array__U32Array u32 = LANCE__TABLE__ENCODED_U64_ARRAY__U32_ARRAY__INIT;
    Lance__Table__EncodedU64Array__U64Array u64 = LANCE__TABLE__ENCODED_U64_ARRAY__U64_ARRAY__INIT;
    for (size_t i = 0; i < n; i++)
        add_offset(&bytes, s->width == 8 ? ids[i] : ids[i] - s->least, s->width);
    if (bytes.failed) {
        out->failed = true;
        return;
    }
    const ProtobufCBinaryData data = {bytes.length, bytes.data};
    u16.has_first = u32.has_first = s->least != 0;
    u16.first = u32.first = s->least;
    u16.has_offsets = u32.has_offsets = u64.has_values = true;
    u16.offsets = u32.offsets = u64.values = data;
    if (s->width == 2) {
        array.array_case = LANCE__TABLE__ENCODED_U64_ARRAY__ARRAY_U16_ARRAY;
        array.u16_array = &u16;
    } else if (s->width == 4) {
        array.array_case = LANCE__TABLE__ENCODED_U64_ARRAY__ARRAY_U32_ARRAY;
        array.u32_array = &u32;
    } else {
        array.array_case = LANCE__TABLE__ENCODED_U64_ARRAY__ARRAY_U64_ARRAY;
        array.u64_array = &u64;
    }
    segment.segment_case =
        s->ascending ? LANCE__TABLE__U64_SEGMENT__SEGMENT_SORTED_ARRAY : LANCE__TABLE__U64_SEGMENT__SEGMENT_ARRAY;
    segment.array = &array; /* the same place as sorted_array: arms of one union */
    pack_segment(&segment, out);
}

static size_t run_length(const uint64_t *ids, size_t n) {
    size_t i = 1;
    while (i < n && ids[i - 1] != UINT64_MAX && ids[i] == ids[i - 1] + 1)
        i++;
    return i;
}

static void pack_ids(const uint64_t *ids, size_t n, struct lfs_buf *out) {
    struct shape s = shape_of(ids, n);
    /* UINT64_MAX itself has no end that is exclusive */
    if (s.most != UINT64_MAX && run_length(ids, n) == n)
        pack_range(s.least, s.most + 1, out);
    else if (s.ascending && s.most != UINT64_MAX && (s.most - s.least) / 8 + 1 < (uint64_t)s.width * n)
        pack_bitmap(&s, ids, n, out);
    else
        pack_array(&s, ids, n, out);
}

/* A shorter run of consecutive ids is not worth a segment of its own among others. */
enum { RUN_MIN = 32 };

errint_t lfs_row_ids_encode(const uint64_t *ids, size_t n, struct lfs_buf *out, struct lfs_error *err) {
    if (n == 0)
        pack_range(0, 0, out);
    for (size_t at = 0; at < n;) {
        size_t start = at, run = run_length(ids + at, n - at);
        if (run < RUN_MIN) {
            for (; at < n && run < RUN_MIN; run = at < n ? run_length(ids + at, n - at) : 0)
                at += run;
        } else {
            at += run;
        }
        pack_ids(ids + start, at - start, out);
    }
    return lfs_buf_check(out, err);
}

errint_t lfs_row_versions_encode(const uint64_t *versions, size_t n, struct lfs_buf *out, struct lfs_error *err) {
    for (size_t at = 0, start = 0; at < n; start = at) {
        while (at < n && versions[at] == versions[start])
            at++;
        VersionSequence sequence = LANCE__TABLE__ROW_DATASET_VERSION_SEQUENCE__INIT;
        VersionRun run = LANCE__TABLE__ROW_DATASET_VERSION_RUN__INIT, *runs = &run;
        Segment span = LANCE__TABLE__U64_SEGMENT__INIT;
        Lance__Table__U64Segment__Range range = make_range(start, at);
        span.segment_case = LANCE__TABLE__U64_SEGMENT__SEGMENT_RANGE;
        span.range = &range;
        run.span = &span;
        run.has_version = versions[start] != 0;
        run.version = versions[start];
        sequence.runs = &runs;
        sequence.n_runs = 1;
        lfs_wire_pack(&sequence.base, out);
    }
    return lfs_buf_check(out, err);
}
