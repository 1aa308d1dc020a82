/* amount.h - numbers and numbers of bytes as people write them. On a wrong form
 * false, and `*out` as it was. */
#ifndef BASE_AMOUNT_H
#define BASE_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal, or hexadecimal behind 0x; the whole text, 64 bits. */
bool number_parse(const char *text, uint64_t *out);
/* A number with nothing, B, KiB or K, MiB or M, GiB or G, or KB, MB, GB (powers
 * of 1000) behind it; fractions such as 4.5MiB must come out whole. */
bool bytes_parse(const char *text, uint64_t *out);

#endif
