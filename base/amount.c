/* amount.c - numbers and numbers of bytes as people write them. */
#include "base/amount.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool number_parse(const char *text, uint64_t *out) {
    bool hex = text[0] == '0' && text[1] == 'x';
    const char *digits = hex ? text + 2 : text;
    const char *allowed = hex ? "0123456789abcdefABCDEF" : "0123456789";
    if (!*digits || digits[strspn(digits, allowed)])
        return false;
    errno = 0;
    unsigned long long value = strtoull(digits, NULL, hex ? 16 : 10);
    if (errno || value > UINT64_MAX)
        return false;
    *out = value;
    return true;
}

/* Digits, and perhaps a point with at most nine more: value = whole + part /
 * scale. */
static const char *parse_decimal(const char *text, uint64_t *whole,
                                 uint64_t *part, uint64_t *scale) {
    *whole = *part = 0;
    *scale = 1;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (*whole > (UINT64_MAX - digit) / 10)
            return NULL;
        *whole = *whole * 10 + digit;
    }
    if (at == text)
        return NULL;
    if (*at != '.')
        return at;
    for (at++; *at >= '0' && *at <= '9' && *scale < 1000000000; at++) {
        *part = *part * 10 + (uint64_t)(*at - '0');
        *scale *= 10;
    }
    return at[-1] == '.' ? NULL : at;
}

bool bytes_parse(const char *text, uint64_t *out) {
    static const struct {
        const char *name;
        uint64_t bytes;
    } unit[] = {{"", 1},          {"B", 1},          {"K", 1 << 10},
                {"KiB", 1 << 10}, {"M", 1 << 20},    {"MiB", 1 << 20},
                {"G", 1 << 30},   {"GiB", 1 << 30},  {"KB", 1000},
                {"MB", 1000000},  {"GB", 1000000000}};
    uint64_t whole, part, scale;
    const char *name = parse_decimal(text, &whole, &part, &scale);
    if (!name)
        return number_parse(text, out);
    name += strspn(name, " ");
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
        if (strcmp(name, unit[i].name))
            continue;
        uint64_t more = part * unit[i].bytes;
        if (more % scale || whole > (UINT64_MAX - more) / unit[i].bytes)
            return false;
        *out = whole * unit[i].bytes + more / scale;
        return true;
    }
    return number_parse(text, out);
}
