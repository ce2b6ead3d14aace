/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges in memory: base, ours and theirs from short texts, merge3 on them, and the plan as text again.
 *
 * A text is a list of statements, separated by ';'. The base's text begins with nothing; each text of a side is a change of
 * the state before it, and one commit of that side.
 *
 *   field ID NAME TYPE [null] [key] [under PARENT] [ext NAME]     add a field, or give it other attributes
 *   -field ID               meta ID KEY=VALUE     -meta ID KEY    metadata of a field
 *   frag ID FILES ROWS [dead SET]                                 add a fragment; it is called by its first file
 *   -frag FILE              files FILE FILES      id FILE ID
 *   dead FILE SET [gone|wrong]   the deletion vector, a file of this commit's own; gone: which is not there any more;
 *                                wrong: which names a row that there is not
 *   config KEY=VALUE        -config KEY           also: table, schema (metadata)
 *   index NAME UUID [FIELD...] [type WORD] [over SET] [also]   -index NAME    UUID is a word; over: the fragments that it
 *                           covers; also: one more segment of that name
 *   format VERSION          stable                max ID
 *   op KIND [uuid WORD] [OLD,...>NEW,...]...       what the commit's transaction says; the groups of a rewrite
 *   brought                                        the commit is a merge
 *   forgotten                                      the history does not have the commit
 *
 * FILES: A (holds every leaf of the schema), A:0,1+B:2 (field ids; -2 is a tombstone; a field's place in the file is its place
 * in the list). SET: none, 1,4-6.
 */
#ifndef LFS_TESTS_UNIT_MERGE_BUILDER_H
#define LFS_TESTS_UNIT_MERGE_BUILDER_H

#include "common.h"
#include "merge/merge3.h"

enum { LAB_STEPS = 12 };

struct scene {
    const char *base;
    const char *ours[LAB_STEPS], *theirs[LAB_STEPS];
    struct lfs_policy policy;
    bool moved; /* ours counts as moved though it has no commit */
};

/* One strategy for everything. */
#define LAB_POLICY(s)                                                                                                  \
    (struct lfs_policy) { .rows = (s), .columns = (s), .schema = (s), .config = (s), .indexes = (s) }

/* What is NULL is not looked at; texts are as the lab_* functions below render them. */
struct expect {
    enum lfs_outcome outcome; /* MERGED stands for FAST_FORWARD, too, where ours has not moved */
    const char *rows, *ids, *files, *schema, *config, *table, *schema_metadata, *indexes;
    const char *conflicts;
    const char *refusal, *note; /* a part of it; note: of one of the notes; "" for none */
};

struct lab {
    struct lfs_arena *arena;
    struct lfs_merge_input input;
    struct lfs_merge_reader reader;
    struct lfs_history ours, theirs;
    struct lfs_plan plan;
    struct lfs_error err;
    errint_t result;
    struct lab_vector *vectors;
    unsigned deletions_read; /* files that the merge asked for */
};

/* Build, and merge. What must hold of every plan is checked. Ends by lab_free. */
void lab_run(struct lab *lab, const struct scene *scene);
void lab_free(struct lab *lab);

/* The same states, compared in another way. */
void lab_merge(struct lab *lab, const struct lfs_version *base, const struct lfs_version *ours,
               const struct lfs_version *theirs);

void lab_check_plan(struct lab *lab); /* what must hold of every plan */

char *lab_rows(struct lab *lab);   /* "A 0-2,4; B 0-9": live rows, in the order of ids; "A -" for none */
char *lab_ids(struct lab *lab);    /* "A=0 B=1" */
char *lab_files(struct lab *lab);  /* "A:0,1+B:2; C:0" */
char *lab_schema(struct lab *lab); /* "0 id int64, 1 s struct?, 2 s.x int32? {k=v}" */
char *lab_config(struct lab *lab); /* "a=1 b=2", sorted */
char *lab_table(struct lab *lab);
char *lab_schema_metadata(struct lab *lab);
char *lab_indexes(struct lab *lab);   /* "i uuid 1 @0-1; j uuid 2,3 theirs": names, uuids, fields, coverage */
char *lab_conflicts(struct lab *lab); /* "update-update row 3 of fragment 0; ..." */

/* Live rows of a fragment of the plan; to be freed. */
roaring_bitmap_t *lab_live(struct lab *lab, const struct lfs_plan_fragment *fragment);
const char *lab_path(const struct lfs_plan_fragment *fragment); /* its first file */

void lab_expect(struct lab *lab, const struct expect *expect);
/* The three in one. */
void check_scene(const struct scene *scene, const struct expect *expect);

/* A test that is nothing but a scene and what is expected of it. */
struct example {
    const char *name;
    struct scene scene;
    struct expect expect;
    bool both;                    /* with ours and theirs exchanged the same is expected */
    const struct expect *swapped; /* or this */
};
int run_examples(const char *group, const struct example *examples, size_t n);

/* The other way round: ours and theirs exchanged. */
struct scene scene_swapped(const struct scene *scene);

/* An lfs_merge3 that could not be planned at all: its error. */
void check_scene_fails(const struct scene *scene, enum lfs_code code, const char *text);

#endif
