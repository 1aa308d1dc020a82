/* listing_number.c - values in JSON that read back as they were.
 *
 * cJSON holds doubles, and prints them to 15 digits where it thinks that is
 * enough; we print the fewest digits that read back to the same bits.
 */
#include "codegen/listing_parts.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_EXACT (UINT64_C(1) << 53)

cJSON *number_from_u64(uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return value <= MOST_EXACT ? cJSON_CreateRaw(text)
                               : cJSON_CreateString(text);
}

void put_u64(cJSON *object, const char *key, uint64_t value) {
    cJSON_AddItemToObject(object, key, number_from_u64(value));
}

void put_text(cJSON *object, const char *key, const char *text) {
    if (text)
        cJSON_AddStringToObject(object, key, text);
    else
        cJSON_AddNullToObject(object, key);
}

static const char *not_finite(double value) {
    return isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

cJSON *number_from_double(double value) {
    char text[32];
    if (!isfinite(value))
        return cJSON_CreateString(not_finite(value));
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (!memcmp(&back, &value, sizeof back))
            break;
    }
    return cJSON_CreateRaw(text);
}

/* 17 digits always read back exactly; looking for fewer takes ten times as
 * long. */
cJSON *numbers_from_doubles(const double *value, uint32_t n) {
    Arena *scratch = arena_new("numbers of a JSON list");
    Text text = text_new(scratch);
    text_add(&text, "[");
    for (uint32_t i = 0; i < n; i++) {
        char digits[32];
        if (isfinite(value[i]))
            snprintf(digits, sizeof digits, "%.17g", value[i]);
        else
            snprintf(digits, sizeof digits, "\"%s\"", not_finite(value[i]));
        text_add(&text, i ? ", " : "");
        text_add(&text, digits);
    }
    text_add(&text, "]");
    cJSON *list = cJSON_CreateRaw(text_str(&text));
    arena_free(scratch);
    return list;
}

bool number_to_u64(const cJSON *item, uint64_t *out) {
    if (cJSON_IsNumber(item)) {
        double value = item->valuedouble;
        if (!(value >= 0 && value <= (double)MOST_EXACT) ||
            value != floor(value))
            return false;
        *out = (uint64_t)value;
        return true;
    }
    if (!cJSON_IsString(item))
        return false;
    uint64_t value = 0;
    for (const char *at = item->valuestring; *at; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (*at < '0' || *at > '9' || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return *item->valuestring;
}

bool number_to_u32(const cJSON *item, uint32_t *out) {
    uint64_t value;
    if (!number_to_u64(item, &value) || value > UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
}

bool number_to_double(const cJSON *item, double *out) {
    static const struct {
        const char *text;
        double value;
    } special[] = {{"inf", (double)INFINITY},
                   {"-inf", -(double)INFINITY},
                   {"nan", (double)NAN}};
    if (cJSON_IsNumber(item)) {
        *out = item->valuedouble;
        return true;
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (cJSON_IsString(item) &&
            !strcmp(item->valuestring, special[i].text)) {
            *out = special[i].value;
            return true;
        }
    return false;
}
