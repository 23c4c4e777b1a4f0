/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Taking demangled names apart.
 *
 * A demangled name has no escape for its punctuation, so it is read from its end, where the
 * grammar is tight: clone suffixes, qualifiers, one balanced parameter list; what is left is
 * [return type] qualified-name. "operator" followed by symbols is the one place where < > ( )
 * are letters, so it is looked for first.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/cxxname.h"

static bool is_ident(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* " [clone .isra.0]" and the like, as often as they come. */
static size_t strip_clones(const char *s, size_t end)
{
	static const char mark[] = " [clone ";
	size_t i;

	while (end && s[end - 1] == ']') {
		for (i = end; i-- > 0 && strncmp(s + i, mark, sizeof(mark) - 1);)
			;
		if (i == (size_t)-1)
			break;
		end = i;
	}
	return end;
}

/* GCC's and LLVM's suffixes of whole functions on a C name: foo.isra.0, foo.llvm.123. */
static size_t strip_dots(const char *s, size_t end)
{
	static const char *const kinds[] = {".isra.", ".constprop.", ".lto_priv.",
					    ".llvm.", ".local.",     ".localalias"};
	size_t i, best = end;
	const char *at;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		at = memmem(s, end, kinds[i], strlen(kinds[i]));
		if (at && at != s && (size_t)(at - s) < best)
			best = at - s;
	}
	return best;
}

static size_t strip_qualifiers(const char *s, size_t end)
{
	static const char *const words[] = {" const", " volatile", " &",
					    " &&",    " noexcept", " restrict"};
	size_t i, n = sizeof(words) / sizeof(*words), len;

	for (i = 0; i < n; i++) {
		len = strlen(words[i]);
		if (end > len && !memcmp(s + end - len, words[i], len)) {
			end -= len;
			i = -1;
		}
	}
	return end;
}

/*
 * The offset of the last "operator" of the name that ends at `end`, when what follows is an
 * operator's symbol or a conversion's type; end: there is none.
 */
static size_t find_operator(const char *s, size_t end)
{
	static const char word[] = "operator";
	const size_t len = sizeof(word) - 1;
	size_t i, j;
	int depth;

	for (i = end; i-- > 0;) {
		if (i + len >= end || memcmp(s + i, word, len) || (i && is_ident(s[i - 1])) ||
		    is_ident(s[i + len]))
			continue;
		j = i + len;
		if (!strchr(" \"", s[j])) {
			while (j < end && strchr("<>=!+-*/%^&|~,()[]", s[j]))
				j++;
			if (j == end || s[j - 1] == '<' || s[end - 1] == '>')
				return i;
			continue;
		}
		/* "operator int", "operator new[]", operator"" _kg: no foreign bracket inside. */
		for (depth = 0; j < end && depth >= 0; j++)
			depth += strchr("<({", s[j]) ? 1 : strchr(">)}", s[j]) ? -1 : 0;
		if (depth == 0)
			return i;
	}
	return end;
}

/* The '(' that the ')' before `end` closes; end: unbalanced. */
static size_t open_paren(const char *s, size_t end)
{
	size_t i;
	int depth = 0;

	for (i = end; i-- > 0;) {
		if (s[i] == ')')
			depth++;
		else if (s[i] == '(' && --depth == 0)
			return i;
	}
	return end;
}

/* "non-virtual thunk to Foo::bar()" is other code than Foo::bar(): its name is all of it. */
static bool is_special(const char *s)
{
	static const char *const starts[] = {"non-virtual thunk to ",	   "virtual thunk to ",
					     "covariant return thunk to ", "TLS init function for ",
					     "TLS wrapper function for ",  "guard variable for "};
	size_t i;

	for (i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (!strncmp(s, starts[i], strlen(starts[i])))
			return true;
	return false;
}

void cxx_name__split(const char *s, struct cxx_name *out)
{
	size_t end, open, stop, i;
	int depth = 0;

	out->end = strlen(s);
	end = strip_clones(s, out->end);
	out->name = 0;
	out->params = out->tail = end;
	if (!memchr(s, '(', end) && !memchr(s, ' ', end)) {
		out->params = out->tail = strip_dots(s, end);
		return;
	}
	if (is_special(s))
		return;
	out->tail = strip_qualifiers(s, end);
	out->params = out->tail;
	if (out->tail && s[out->tail - 1] == ')') {
		open = open_paren(s, out->tail);
		/* operator() without a parameter list is a name. */
		if (open < out->tail && open &&
		    !(open >= 8 && !memcmp(s + open - 8, "operator", 8) && open + 2 == out->tail))
			out->params = open;
	} else {
		out->tail = out->params = end;
	}
	stop = find_operator(s, out->params);
	for (i = stop; i-- > 0;) {
		if (strchr(">)}]", s[i]) && !(s[i] == '>' && i && s[i - 1] == '-'))
			depth++;
		else if (strchr("<({[", s[i]))
			depth--;
		else if (s[i] == ' ' && depth <= 0)
			break;
	}
	out->name = i + 1; /* i is -1 without a return type */
}

/* Copies without blanks that stand beside punctuation. */
static char *squeeze(const char *s, size_t len)
{
	char *out = malloc(len + 1);
	size_t i, n = 0;

	if (!out)
		return NULL;
	for (i = 0; i < len; i++) {
		if (s[i] == ' ' &&
		    (!n || i + 1 == len || !is_ident(out[n - 1]) || !is_ident(s[i + 1])))
			continue;
		out[n++] = s[i];
	}
	out[n] = '\0';
	return out;
}

/* Drops template arguments: ns::Foo<int>::run<2> -> ns::Foo::run. Operators stay whole. */
static size_t drop_templates(char *s, size_t len)
{
	size_t op = find_operator(s, len), i, n = 0;
	int depth = 0;

	for (i = 0; i < op; i++) {
		if (s[i] == '<')
			depth++;
		if (!depth)
			s[n++] = s[i];
		if (s[i] == '>' && depth && s[i - 1] != '-')
			depth--;
	}
	for (; i < len; i++)
		s[n++] = s[i];
	s[n] = '\0';
	return n;
}

bool name_is_mangled(const char *raw)
{
	return raw[0] == '_' && (raw[1] == 'Z' || raw[1] == 'R');
}

/* Words that C++ or Rust mangling writes in another way. */
static const char abbreviated[] =
    " std string allocator basic_string char_traits basic_istream basic_ostream "
    "basic_iostream istream ostream iostream anonymous namespace lambda unnamed type operator "
    "new delete int unsigned signed char long short bool double float void wchar_t char8_t "
    "char16_t char32_t __int128 const volatile restrict noexcept auto decltype nullptr_t "
    "thunk non virtual covariant return guard variable clone TLS init wrapper function for "
    "initializer typeinfo vtable construction true false "
    "u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 str impl dyn mut as closure "
    "shim abi ";

size_t mangled_token(const char *s, size_t len, const char **token)
{
	size_t i, start, best = 0, n;
	int angle = 0;
	bool ascii = true;

	*token = s;
	for (i = start = 0; i <= len; i++) {
		if (i < len && is_ident(s[i])) {
			ascii &= (unsigned char)s[i] < 0x80;
			continue;
		}
		n = i - start;
		if (n > best && ascii && !angle && !isdigit((unsigned char)s[start]) &&
		    !memmem(abbreviated, sizeof(abbreviated) - 1, s + start, n)) {
			best = n;
			*token = s + start;
		}
		/* Template arguments may be numbers, or types that a pattern writes otherwise. */
		if (i < len && s[i] == '<')
			angle++;
		else if (i < len && s[i] == '>' && angle)
			angle--;
		start = i + 1;
		ascii = true;
	}
	return best;
}

int typed_name__parse(struct typed_name *t, const char *typed)
{
	struct cxx_name part;
	const char *token;
	size_t len;

	memset(t, 0, sizeof(*t));
	t->squeezed = squeeze(typed, strlen(typed));
	if (!t->squeezed)
		return -ENOMEM;
	cxx_name__split(typed, &part);
	t->has_params = part.params != part.tail;
	t->has_template = memchr(typed, '<', find_operator(typed, part.params));
	len = mangled_token(typed + part.name, part.params - part.name, &token);
	t->token = strndup(token, len);
	return t->token ? 0 : -ENOMEM;
}

bool typed_name__may_be(const struct typed_name *t, const char *raw)
{
	if (!name_is_mangled(raw))
		return strstr(raw, t->token);
	return strstr(raw, t->token) || !strcmp(raw, t->squeezed);
}

void typed_name__clear(struct typed_name *t)
{
	free(t->squeezed);
	free(t->token);
	memset(t, 0, sizeof(*t));
}

/* squeezed text equals s[0 .. len) once that is squeezed too. */
static bool same(const struct typed_name *t, const char *s, size_t len)
{
	size_t want = strlen(t->squeezed);
	char *q;
	bool eq;

	if (len < want)
		return false;
	if (len == want && !memcmp(s, t->squeezed, want))
		return true;
	if (!memchr(s, ' ', len))
		return false;
	q = squeeze(s, len);
	eq = q && !strcmp(q, t->squeezed);
	free(q);
	return eq;
}

bool typed_name__is(const struct typed_name *t, const char *raw, const char *demangled)
{
	struct cxx_name part;
	size_t len;
	char *bare;
	bool eq;

	if (!strcmp(raw, t->squeezed))
		return true;
	cxx_name__split(demangled, &part);
	if (t->has_params)
		return same(t, demangled + part.name, part.tail - part.name) ||
		       same(t, demangled + part.name,
			    strip_clones(demangled, part.end) - part.name) ||
		       same(t, demangled, part.end);
	len = part.params - part.name;
	if (same(t, demangled + part.name, len))
		return true;
	if (t->has_template || !memchr(demangled + part.name, '<', len))
		return false;
	bare = squeeze(demangled + part.name, len);
	eq = bare && drop_templates(bare, strlen(bare)) == strlen(t->squeezed) &&
	     !strcmp(bare, t->squeezed);
	free(bare);
	return eq;
}
