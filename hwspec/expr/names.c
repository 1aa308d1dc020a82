/* names.c - what expressions can name, and the values that each may have. */
#include "hwspec/expr/expr.h"

#include <string.h>

ExprNames *expr_names(Arena *arena) {
    ExprNames *names = ARENA_NEW(arena, ExprNames);
    names->arena = arena;
    names->number = map_new(arena);
    return names;
}

uint32_t expr_find(const ExprNames *names, const char *name) {
    return map_get(names->number, name, EXPR_NONE);
}

uint32_t expr_add(ExprNames *names, const ExprName *name) {
    uint32_t number = names->list.n;
    map_put(names->number, name->name, number);
    vec_push(names->arena, &names->list, *name);
    return number;
}

enum { LONGEST = 64 };

static uint32_t least3(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Letters to insert, delete or change (Levenshtein 1966); of long names a
 * number that is never near. */
static uint32_t distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    uint32_t row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (uint32_t k = 0; k <= m; k++)
        row[k] = k;
    for (size_t i = 0; i < n; i++) {
        uint32_t corner = row[0];
        row[0] = (uint32_t)i + 1;
        for (size_t k = 0; k < m; k++) {
            uint32_t change = corner + (a[i] != b[k]);
            corner = row[k + 1];
            row[k + 1] = least3(change, row[k] + 1, corner + 1);
        }
    }
    return row[m];
}

const char *expr_suggest_of(const ExprNames *names, uint32_t n,
                            const uint32_t *name, const char *wrong) {
    uint32_t best = (uint32_t)strlen(wrong) / 3 + 2;
    const char *found = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const char *text = names->list.at[name ? name[i] : i].name;
        uint32_t far = strchr(text, '(') ? best : distance(text, wrong);
        if (far < best) {
            best = far;
            found = text;
        }
    }
    return found;
}

const char *expr_suggest(const ExprNames *names, const char *wrong) {
    return expr_suggest_of(names, names->list.n, NULL, wrong);
}

bool expr_domain_has(const ExprDomain *domain, int64_t value) {
    if (value < domain->range.lo || value > domain->range.hi)
        return false;
    for (uint32_t i = 0; i < domain->n; i++)
        if (domain->list[i] == value)
            return true;
    return domain->n == 0 && (domain->step < 2 || value % domain->step == 0);
}

bool expr_domain_only(const ExprDomain *domain, ExprRange range, int64_t *out) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < domain->n; i++)
        if (domain->list[i] >= range.lo && domain->list[i] <= range.hi) {
            *out = domain->list[i];
            found++;
        }
    if (domain->n)
        return found == 1;
    int64_t step = domain->step > 1 ? domain->step : 1;
    int64_t up = range.lo % step > 0   ? step - range.lo % step
                 : range.lo % step < 0 ? -(range.lo % step)
                                       : 0;
    if (up > range.hi - range.lo && range.hi - range.lo >= 0)
        return false;
    *out = range.lo + up;
    return (*out > INT64_MAX - step || *out + step > range.hi) &&
           expr_domain_has(domain, *out);
}

const char *expr_domain_text(Arena *arena, const ExprDomain *domain) {
    Text text = text_new(arena);
    for (uint32_t i = 0; i < domain->n; i++)
        text_addf(&text, "%s%lld", i ? ", " : "", (long long)domain->list[i]);
    if (!domain->n)
        text_addf(&text, "%lld..%lld", (long long)domain->range.lo,
                  (long long)domain->range.hi);
    if (domain->step > 1)
        text_addf(&text, " in steps of %lld", (long long)domain->step);
    return text_str(&text);
}
