/* html.c - what all pages share; see html.h. */
#include "report/html.h"

#include "base/plain.h"

#include <inttypes.h>

static const char style[] =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:80em;"
    "padding:0 1em;color:#1b1f24;background:#fff}"
    "h1{font-size:1.5em;margin:0}h2{font-size:1.15em;margin:2em 0 .5em}"
    "p.sub{color:#57606a;margin:.2em 0 1em}"
    "table{border-collapse:collapse;font-size:13px;font-variant-numeric:"
    "tabular-nums}"
    "th{text-align:right;font-weight:600;border-bottom:1px solid #8c959f;"
    "padding:.25em .6em;vertical-align:bottom;background:#fff}"
    "td{text-align:right;padding:.15em .6em;border-bottom:1px solid #eaeef2;"
    "white-space:nowrap}"
    "th.l,td.l{text-align:left}td.w{white-space:normal;text-align:left}"
    "tr.hot td{background:#fff3c4}tr.off td{color:#8c959f}"
    ".scroll{overflow-x:auto}"
    "svg{display:block;max-width:100%;height:auto}"
    "svg text{font:11px system-ui,sans-serif;fill:#57606a}"
    ".axis{stroke:#8c959f;fill:none}.grid{stroke:#eaeef2}"
    ".bar{display:inline-block;height:.7em;background:#4e79a7}"
    ".key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}"
    ".mark{color:#b35900;font-weight:600}";

void html_text(Text *to, const char *text) {
    static const struct {
        char plain;
        const char *safe;
    } special[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
    for (; *text; text++) {
        const char *safe = NULL;
        for (int i = 0; i < 4; i++)
            if (*text == special[i].plain)
                safe = special[i].safe;
        size_t n = plain_length(text);
        if (safe)
            text_add(to, safe);
        else if (n)
            text_add_n(to, text, n);
        else
            text_addf(to, "\\x%02x", (unsigned char)*text);
        text += n ? n - 1 : 0;
    }
}

void html_open(Text *to, const char *title, const char *subtitle) {
    text_add(to, "<!DOCTYPE html>\n<html lang=\"en\"><head>"
                 "<meta charset=\"utf-8\">\n<title>");
    html_text(to, title);
    text_addf(to, "</title>\n<style>%s</style></head><body>\n<h1>", style);
    html_text(to, title);
    text_add(to, "</h1>\n<p class=\"sub\">");
    html_text(to, subtitle);
    text_add(to, "</p>\n");
}

static const char tips[] =
    "<div id=\"tip\" style=\"position:fixed;display:none;background:#1b1f24;"
    "color:#fff;padding:.4em .7em;border-radius:4px;white-space:pre;"
    "pointer-events:none\"></div>\n"
    "<script>\n"
    "const tip=document.getElementById('tip');let hot=null;\n"
    "for(const c of document.querySelectorAll('circle.p')){\n"
    "const t=c.querySelector('title'),s=t.textContent;t.remove();\n"
    "const r=document.getElementById('p'+c.dataset.p);\n"
    "c.onmousemove=e=>{tip.textContent=s;tip.style.display='block';\n"
    "tip.style.left=Math.min(e.clientX+14,innerWidth-tip.offsetWidth-8)+'px';\n"
    "tip.style.top=e.clientY+14+'px';if(hot)hot.classList.remove('hot');\n"
    "hot=r;if(r)r.classList.add('hot')};\n"
    "c.onmouseleave=()=>tip.style.display='none';\n"
    "c.onclick=()=>r&&r.scrollIntoView({block:'center'})}\n"
    "</script>\n";

void html_tips(Text *to) {
    text_add(to, tips);
}

void html_close(Text *to) {
    text_add(to, "</body></html>\n");
}

void html_count(Text *to, uint64_t value) {
    if (value >= 1000) {
        html_count(to, value / 1000);
        text_addf(to, ",%03" PRIu64, value % 1000);
    } else {
        text_addf(to, "%" PRIu64, value);
    }
}

uint64_t html_step(uint64_t top, uint32_t most) {
    static const uint64_t times[] = {1, 2, 5};
    for (uint64_t power = 1; power < UINT64_C(1000000000000000000); power *= 10)
        for (int i = 0; i < 3; i++)
            if (top / (power * times[i]) <= most)
                return power * times[i];
    return top ? top : 1;
}

void html_short(Text *to, uint64_t value) {
    static const char suffix[] = {'k', 'M', 'G', 'T'};
    if (value < 1000) {
        text_addf(to, "%" PRIu64, value);
        return;
    }
    double v = (double)value / 1000;
    int i = 0;
    while (v >= 1000 && i < 3) {
        v /= 1000;
        i++;
    }
    text_addf(to, "%.4g %c", v, suffix[i]);
}
