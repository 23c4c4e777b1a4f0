// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `qbpf list` as text and JSON, from a plan made by hand. */
#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "golden.h"
#include "out/json.h"
#include "out/list.h"

static struct usdt_marker markers[] = {
    {.provider = "strategy",
     .name = "tick__begin",
     .argstr = "-4@%edi 8@%zz",
     .addr = 0x1100,
     .sema_off = 0x40,
     .nargs = 2,
     .args = {{.kind = USDT_ARG_REG, .size = 4, .is_signed = true},
	      {.kind = USDT_ARG_UNREADABLE, .size = 8, .why = "no such register"}}},
    {.provider = "strategy", .name = "tick__end", .argstr = "", .addr = 0x1200},
    {.provider = "strategy", .name = "tick__end", .argstr = "", .addr = 0x1300},
    {.provider = "strategy", .name = "order", .argstr = "8@$5", .addr = 0x1400},
};
static struct usdt_table table = {.markers = markers, .n = 4, .bad = 1};
static struct elf_func funcs[] = {
    {.name = "_Z4stepv", .demangled = "step()", .addr = 0x2000, .size = 64, .alias_of = 0},
    {.name = "puts", .demangled = "puts", .flags = FUNC_IMPORTED, .alias_of = 1},
};
static struct func_table functions = {.funcs = funcs, .n = 2, .source = ".symtab"};
static const struct plan_object objects[] = {
    {.path = "/opt/a\x1b[2Jb", .markers = &table, .funcs = &functions},
    {.path = "/lib/libempty.so"},
};
static const uint64_t price_ns[PRICE_N] = {1250, 5000, 20000, 1300};

static struct plan_span spans[] = {
    {.name = "strategy:tick", .kind = SPAN_MARKER, .armed = true},
    {.name = "strategy:order", .kind = SPAN_INSTANT},
    {.name = "step()",
     .kind = SPAN_FUNC,
     .way = RET_URETPROBE,
     .way_reason = "nothing in the process throws",
     .armed = true},
};
static struct plan_site sites[] = {
    /* Not in the order of the spans, as when a library was opened later. */
    {.span = 3,
     .role = QBPF_ROLE_ENTRY,
     .addr = 0x2004,
     .found_addr = 0x2000,
     .verdict = VERDICT_RELOCATED,
     .price = PRICE_EMULATED,
     .reason = "endbr64"},
    {.span = 1,
     .role = QBPF_ROLE_BEGIN,
     .addr = 0x1100,
     .found_addr = 0x1100,
     .verdict = VERDICT_ARM,
     .price = PRICE_NOP5},
    {.span = 1,
     .role = QBPF_ROLE_END,
     .addr = 0x1200,
     .found_addr = 0x1200,
     .verdict = VERDICT_ARM,
     .price = PRICE_EMULATED},
    {.span = 1,
     .role = QBPF_ROLE_END,
     .addr = 0x1300,
     .found_addr = 0x1300,
     .verdict = VERDICT_ARM,
     .price = PRICE_EMULATED},
    {.span = 2,
     .role = QBPF_ROLE_INSTANT,
     .addr = 0x1400,
     .found_addr = 0x1400,
     .verdict = VERDICT_REFUSED,
     .reason = "live data may lie below the stack pointer"},
    {.span = 3,
     .role = QBPF_ROLE_RETURN,
     .addr = 0x2000,
     .found_addr = 0x2000,
     .verdict = VERDICT_ARM,
     .price = PRICE_URETPROBE},
};
static char note[] = "memcpy: IFUNC resolver";
static char *notes[] = {note};
static const struct plan plan = {
    .spans = spans, .nspans = 3, .sites = sites, .nsites = 6, .notes = notes, .nnotes = 1};

static void t_text(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	list__write(f, &plan, objects, 2, price_ns);
	assert_int_equal(fclose(f), 0);
	for (const char *p = text; *p; p++)
		assert_true(*p == '\n' || *p >= 0x20);
	golden__check("list.txt", text);
	free(text);
}

static void t_json(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	json_t *root;

	(void)state;
	assert_non_null(f);
	assert_int_equal(json__write_list(f, &plan, objects, 2, price_ns), 0);
	assert_int_equal(fclose(f), 0);
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_int_equal(json_array_size(json_object_get(root, "spans")), 3);
	json_decref(root);
	golden__check("list.json", text);
	free(text);
}

static void t_nothing(void **state)
{
	static const struct plan none;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	list__write(f, &none, &objects[1], 1, NULL);
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text, "no markers and no functions\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_text),
	    cmocka_unit_test(t_json),
	    cmocka_unit_test(t_nothing),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests_name("out_list", tests, NULL, NULL);
}
