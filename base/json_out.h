/* json_out.h - JSON written as it comes, for what is too long for one tree.
 *
 * The text is the same as cJSON prints of the whole, one key a line; cJSON
 * values can be parts of it.
 */
#ifndef BASE_JSON_OUT_H
#define BASE_JSON_OUT_H

#include "base/json.h"
#include "base/text.h"

enum { JSON_OUT_DEPTH = 16 };

typedef struct JsonOut {
    Text *text;
    bool compact;                /* all in one line from here on, until it is
                                  * unset at the same depth */
    uint32_t depth;              /* lists and objects that are open */
    bool object[JSON_OUT_DEPTH]; /* which of both; */
    bool any[JSON_OUT_DEPTH];    /* has it something already? */
} JsonOut;

JsonOut json_out_new(Text *text);

/* `key` is NULL in a list, and for the outermost value. */
void json_out_object(JsonOut *out, const char *key);
void json_out_list(JsonOut *out, const char *key);
/* Of the object or list that was opened last. */
void json_out_close(JsonOut *out);

void json_out_number(JsonOut *out, const char *key, uint64_t value);
/* NULL is null. */
void json_out_text(JsonOut *out, const char *key, const char *text);
/* Frees the value. */
void json_out_value(JsonOut *out, const char *key, cJSON *value);
/* What an object holds goes into the one that is open; frees the object. */
void json_out_members(JsonOut *out, cJSON *object);

#endif
