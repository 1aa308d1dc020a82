/* ops.c - the table of Caffe's layers, made of ops.def. */
#include "frontends/caffe/caffe.h"

#include <string.h>

static const CaffeType types[] = {
#define TYPE(name, v1, number, role, min, max, tops, build)                    \
    {name, v1, number, role, min, max, tops, build},
#include "frontends/caffe/ops.def"
#undef TYPE
};
enum { N_TYPES = sizeof types / sizeof *types };

const CaffeType *caffe_find_type(const ProtoField *field) {
    for (uint32_t i = 0; i < N_TYPES; i++) {
        const CaffeType *type = &types[i];
        if (field->kind == PROTO_STRING && !strcmp(type->name, field->text))
            return type;
        if (field->kind == PROTO_WORD && type->v1 &&
            !strcmp(type->v1, field->text))
            return type;
        if (field->kind == PROTO_NUMBER && field->whole && type->number &&
            field->integer == type->number)
            return type;
    }
    return NULL;
}

const CaffeType caffe_unsupported = {.name = "",
                                     .max_bottom = UINT32_MAX,
                                     .max_top = UINT32_MAX,
                                     .build = caffe_refuse};
