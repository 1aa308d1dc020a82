/* read_bits.h - items that are bits with fields in them, for read_items.c.
 *
 * What is wrong is reported; the item is then one without fields.
 */
#ifndef HWSPEC_FORMAT_READ_BITS_H
#define HWSPEC_FORMAT_READ_BITS_H

#include "hwspec/format/format.h"

/* A word of `words`, whose size it may take over. */
Item format_read_word(ItemReader *r, YamlNode *word, YamlNode *words);
/* `word: 2 x 64` with bits of its own. */
Item format_read_own_word(ItemReader *r, YamlNode *map, YamlNode *size);
/* The type that a map gives numbers: u8, s16, f32...; NULL: it is none. */
typedef struct NumberType NumberType;
const NumberType *format_number_type(const YamlNode *map);
Item format_read_numbers(ItemReader *r, YamlNode *map, const NumberType *type);

#endif
