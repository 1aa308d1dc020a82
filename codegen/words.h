/* words.h - Listing -> Program: the words of a machine's instructions, by the
 * ways of its hwspec (hwspec/emit.h, `of: listing`).
 *
 * Each instruction of a listing becomes a list of words; its operands lie where
 * the plan says. Backing memory is one image of regions: constants, then the
 * memories that the hwspec names. Where the host runs a layer, one list of
 * words ends and the next begins.
 */
#ifndef CODEGEN_WORDS_H
#define CODEGEN_WORDS_H

#include "codegen/listing.h"
#include "hwspec/program.h"
#include "plan/plan.h"

enum { WORDS_NOWHERE = -1 };

typedef struct ListedWords {
    const Program *program;
    const uint32_t *first; /* by instruction of the listing: its first of the
                            * program; at the end as many as there are */
    uint32_t n_lists;
    const uint32_t *list;  /* their first ones, and the end */
    const uint8_t *image;  /* the backing memory before: addresses, constants */
    uint64_t bytes;        /* of it */
    uint64_t constants;    /* bytes of these */
    const int64_t *region; /* by memory: its first byte there, or
                            * WORDS_NOWHERE */
} ListedWords;

/* `action_of`: by instruction (codegen_run). NULL after errors: an instruction
 * that no way takes, with the first condition that does not hold. */
const ListedWords *codegen_words(Arena *arena, Diag *diag, const Plan *plan,
                                 const Listing *listing,
                                 const uint32_t *action_of);

#endif
