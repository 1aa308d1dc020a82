/* schema_rows.h - how tables of field numbers are written: SCHEMA names one,
 * and its rows are INT, BOOL, FLOAT, DOUBLE, TEXT, RAW and SUB. For schema.c of
 * the formats alone.
 */
#ifndef FRONTENDS_PROTO_SCHEMA_ROWS_H
#define FRONTENDS_PROTO_SCHEMA_ROWS_H

#include "frontends/proto/protobin.h"

#define SCHEMA(name, ...)                                                      \
    static const ProtoRow name##_rows[] = {__VA_ARGS__};                       \
    static const ProtoSchema name = {sizeof name##_rows / sizeof *name##_rows, \
                                     name##_rows}
#define INT(number, name)                                                      \
    { number, name, PROTO_INT, NULL }
#define BOOL(number, name)                                                     \
    { number, name, PROTO_BOOL, NULL }
#define FLOAT(number, name)                                                    \
    { number, name, PROTO_FLOAT, NULL }
#define DOUBLE(number, name)                                                   \
    { number, name, PROTO_DOUBLE, NULL }
#define TEXT(number, name)                                                     \
    { number, name, PROTO_TEXT, NULL }
#define RAW(number, name)                                                      \
    { number, name, PROTO_RAW, NULL }
#define SUB(number, name, schema)                                              \
    { number, name, PROTO_SUB, &schema }

#endif
