/* ops.c - the table of ONNX's operators, made of ops.def. */
#include "frontends/onnx/onnx.h"

#include <string.h>

static const OnnxOp ops[] = {
#define OP(name, min, max, outs, build, fold, kind)                            \
    {name, min, max, outs, build, fold, kind},
#include "frontends/onnx/ops.def"
#undef OP
};
enum { N_OPS = sizeof ops / sizeof *ops };

const OnnxOp *onnx_find_op(const OnnxNode *n) {
    size_t domain = strcmp(n->domain, "ai.onnx") ? strlen(n->domain) : 0;
    for (uint32_t i = 0; i < N_OPS; i++) {
        const char *name = ops[i].name;
        if (domain) {
            if (strncmp(name, n->domain, domain) != 0 || name[domain] != '.')
                continue;
            name += domain + 1;
        }
        if (!strcmp(name, n->type))
            return &ops[i];
    }
    return NULL;
}
