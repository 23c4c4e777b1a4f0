/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the function's name in __PRETTY_FUNCTION__.
 *
 * The text is read from the left. What is built is the name of the entity at hand; a space, '*' or
 * '&' says that it was part of the return type and begins the next. The first parameter list
 * that is not followed by "::" ends it. gcc writes template parameters and their values behind it
 * ("Pricer<T>::price() [with T = double]"), clang writes the values in place, so they are put in
 * place here. Lambdas and unnamed things are spelled in one way.
 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "elf/pretty_func.h"

#define NEST_MAX 64

struct namer {
	char *out;
	size_t cap, n;
	size_t comp;	  /* where the current component begins */
	size_t args;	  /* where its template arguments begin, 0: none */
	const char *with; /* gcc's list of template parameters, "" without one */
	bool overflow;
};

static void put(struct namer *w, const char *s, size_t len)
{
	if (w->n + len >= w->cap) {
		w->overflow = true;
		return;
	}
	memcpy(w->out + w->n, s, len);
	w->n += len;
}

static void put_text(struct namer *w, const char *s)
{
	put(w, s, strlen(s));
}

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

static size_t word_len(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '$' || s[n] == '~' ||
	       (unsigned char)s[n] >= 0x80)
		n++;
	return n;
}

static bool is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(s, word, len);
}

/* Past the literal 'x' or "x" at s. */
static const char *skip_literal(const char *s)
{
	char quote = *s++;

	while (*s && *s != quote)
		s += *s == '\\' && s[1] ? 2 : 1;
	return *s ? s + 1 : s;
}

/* Past the bracket that closes the one at s; NULL: there is none. */
static const char *skip_group(const char *s)
{
	char open[NEST_MAX];
	size_t n = 0;

	while (*s) {
		switch (*s) {
		case '\'':
		case '"':
			s = skip_literal(s);
			continue;
		case '<':
			if (n && open[n - 1] == '(' && s[-1] == ' ' && s[1] == ' ')
				break; /* less than */
				       /* fallthrough */
		case '(':
		case '[':
		case '{':
			if (n == NEST_MAX)
				return NULL;
			open[n++] = *s;
			break;
		case '>':
			if (n && open[n - 1] == '<' && s[-1] != '-')
				n--;
			break;
		case ')':
		case ']':
		case '}':
			while (n && open[n - 1] == '<')
				n--;
			if (!n)
				return NULL;
			n--;
			break;
		}
		s++;
		if (!n)
			return s;
	}
	return NULL;
}

/* The value of a template parameter in gcc's list "int N = 3; T = double]". */
static const char *find_value(const struct namer *w, const char *word, size_t len,
			      size_t *value_len)
{
	const char *item = w->with;

	while (*item) {
		const char *eq = strstr(item, " = "), *end, *value;

		if (!eq)
			return NULL;
		value = end = eq + 3;
		while (*end && *end != ';' && *end != ']') {
			const char *next = end + 1;

			if (strchr("(<[{", *end))
				next = skip_group(end);
			else if (*end == '\'' || *end == '"')
				next = skip_literal(end);
			if (!next)
				return NULL;
			end = next;
		}
		if ((size_t)(eq - item) >= len && !memcmp(eq - len, word, len) &&
		    (eq - len == item || eq[-(ptrdiff_t)len - 1] == ' ') &&
		    !memchr(item, '(', (size_t)(eq - item))) {
			/* the values of a pack */
			bool pack = *value == '{' && end > value + 1;

			*value_len = (size_t)(end - value) - (pack ? 2 : 0);
			return value + pack;
		}
		item = starts(end, "; ") ? end + 2 : "";
	}
	return NULL;
}

static void replace_all(struct namer *w, size_t from, const char *old, const char *new)
{
	size_t nold = strlen(old), nnew = strlen(new);

	for (size_t i = from; i + nold <= w->n; i++) {
		if (memcmp(w->out + i, old, nold))
			continue;
		memcpy(w->out + i, new, nnew); /* never longer */
		memmove(w->out + i + nnew, w->out + i + nold, w->n - i - nold);
		w->n -= nold - nnew;
		i += nnew - (nnew > 0);
	}
}

/* Spaces that clang writes and gcc does not, or the other way round. */
static bool is_idle_space(const struct namer *w, const char *next)
{
	return strchr("*&>() ", *next) || (w->n && strchr("<(, ", w->out[w->n - 1]));
}

static void put_type_text(struct namer *w, const char *s, const char *end, bool substitute)
{
	const char *value;
	size_t len, value_len;

	while (s < end) {
		len = word_len(s);
		if (starts(s, "<template-parameter-"))
			len = strcspn(s, ">") + 1;
		if (len && len <= (size_t)(end - s)) {
			value = substitute && !(w->n && w->out[w->n - 1] == ':')
				    ? find_value(w, s, len, &value_len)
				    : NULL;
			s += len;
			if (!value) {
				put(w, s - len, len);
				continue;
			}
			put_type_text(w, value, value + value_len, false);
			if (starts(s, " ..."))
				s += 4;
		} else if (*s == '\'' || *s == '"') {
			value = skip_literal(s);
			put(w, s, (size_t)(value - s));
			s = value;
		} else {
			if (*s == ',')
				put_text(w, ", ");
			else if (*s != ' ' || (s + 1 < end && !is_idle_space(w, s + 1)))
				put(w, s, 1);
			s++;
		}
	}
}

/* A type or template arguments, in one spelling. */
static void put_type(struct namer *w, const char *s, const char *end)
{
	static const char *const spellings[][2] = {
	    {"std::__cxx11::", "std::"},
	    {"std::__1::", "std::"},
	    {"std::basic_string<char>", "std::string"},
	    {"long long unsigned int", "unsigned long long"},
	    {"long unsigned int", "unsigned long"},
	    {"short unsigned int", "unsigned short"},
	    {"long int", "long"},
	    {"short int", "short"},
	};
	size_t from = w->n;

	put_type_text(w, s, end, true);
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++)
		replace_all(w, from, spellings[i][0], spellings[i][1]);
}

/* clang names the class of a conversion operator without its scopes and arguments. */
static void reduce_type(struct namer *w, size_t from)
{
	size_t to = from, word = from, depth = 0;

	for (size_t i = from; i < w->n; i++) {
		char c = w->out[i];

		if (c == '<' || c == '>') {
			depth += c == '<' ? 1 : depth ? (size_t)-1 : 0;
		} else if (depth) {
			continue;
		} else if (c == ':') {
			to = word;
		} else {
			w->out[to++] = c;
			if (!isalnum((unsigned char)c) && c != '_')
				word = to;
		}
	}
	w->n = to;
}

/* Past "operator" and what it names; NULL: not understood. */
static const char *read_operator(struct namer *w, const char *s)
{
	const char *end = s + strspn(s, " ");
	size_t len, from;

	put_text(w, "operator");
	if (starts(end, "()") || starts(end, "[]")) {
		put(w, end, 2);
		return end + 2;
	}
	if (*end == '"') {
		put_text(w, "\"\"");
		s = skip_literal(end);
		s += strspn(s, " ");
		len = word_len(s);
		put(w, s, len);
		return s + len;
	}
	len = strspn(end, "+-*/%^&|~!=<>,");
	if (len) {
		put(w, end, len);
		end += len;
		s = end + strspn(end, " ");
		return *s == '<' ? skip_group(s) : s;
	}
	s = end;
	len = word_len(s);
	put_text(w, " ");
	if (is_word(s, len, "new") || is_word(s, len, "delete") || is_word(s, len, "co_await")) {
		put(w, s, len);
		s += len;
		s += strspn(s, " ");
		if (!starts(s, "[]"))
			return s;
		put_text(w, "[]");
		return s + 2;
	}
	for (end = s; *end && !starts(end, "()");) {
		end = *end == '<' || *end == '(' ? skip_group(end) : end + 1;
		if (!end)
			return NULL;
	}
	from = w->n;
	put_type(w, s, end);
	reduce_type(w, from);
	return end;
}

/* What is followed by "::" behind a parameter list is a scope; NULL: nothing is. */
static const char *scope_after(const char *s)
{
	static const char *const words[] = {"const", "volatile", "noexcept", "mutable", "static"};

	for (;;) {
		bool known = false;
		size_t len;

		s += strspn(s, " &");
		if (starts(s, "::"))
			return s;
		if (starts(s, "[with ")) {
			s = skip_group(s);
			if (!s)
				return NULL;
			continue;
		}
		len = word_len(s);
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			known |= is_word(s, len, words[i]);
		if (!known)
			return NULL;
		s += len;
	}
}

static void next_entity(struct namer *w)
{
	w->n = w->comp = w->args = 0;
}

/* "(anonymous class)" and the like, and gcc's "<lambda(int)>" and "<unnamed struct>". */
static const char *read_unnamed(struct namer *w, const char *s)
{
	const char *end = skip_group(s), *kind = strchr(s, ' ');
	size_t len;

	if (!end)
		return NULL;
	if (starts(s + 1, "lambda") || starts(s + 1, "anonymous class") ||
	    starts(s + 1, "unnamed class")) {
		put_text(w, "{lambda}");
		return starts(end, "::operator()") ? end + strlen("::operator()") : end;
	}
	len = kind ? word_len(kind + 1) : 0;
	if (!len)
		return NULL;
	put_text(w, "(anonymous ");
	put(w, kind + 1, len);
	put_text(w, ")");
	return end;
}

static bool is_unnamed(const char *s)
{
	return starts(s + 1, "lambda") || starts(s + 1, "anonymous ") || starts(s + 1, "unnamed ");
}

static bool ends_in_lambda(const struct namer *w)
{
	return w->n >= 8 && !memcmp(w->out + w->n - 8, "{lambda}", 8);
}

/* A parameter list, a group of the declarator, or an unnamed thing. NULL with *done: the end. */
static const char *read_paren(struct namer *w, const char *s, bool *done)
{
	const char *end;

	if (w->n == w->comp) {
		if (is_unnamed(s))
			return read_unnamed(w, s);
		return w->n ? NULL : s + 1;
	}
	end = skip_group(s);
	if (!end)
		return NULL;
	if (w->args)
		w->n = w->args;
	w->args = 0;
	end = scope_after(end);
	*done = !end;
	return end;
}

static const char *read_word(struct namer *w, const char *s)
{
	static const char *const with_group[] = {"decltype", "typeof", "__typeof__", "noexcept",
						 "alignas"};
	size_t len = word_len(s);

	if (w->n == w->comp && is_word(s, len, "operator"))
		return read_operator(w, s + len);
	put(w, s, len);
	for (size_t i = 0; i < sizeof(with_group) / sizeof(with_group[0]); i++) {
		const char *group = s + len + strspn(s + len, " ");

		if (!is_word(s, len, with_group[i]) || *group != '(')
			continue;
		next_entity(w);
		return skip_group(group);
	}
	return s + len;
}

static const char *read_angle(struct namer *w, const char *s)
{
	const char *end;

	if (is_unnamed(s)) {
		/* gcc: "void<unnamed struct>::f()" */
		if (w->n != w->comp)
			next_entity(w);
		return read_unnamed(w, s);
	}
	end = skip_group(s);
	if (!end)
		return NULL;
	if (w->n == w->comp) { /* "<dependent type>" */
		next_entity(w);
		return end;
	}
	w->args = w->n;
	put_text(w, "<");
	put_type(w, s + 1, end - 1);
	put_text(w, ">");
	return end;
}

static bool read_name(struct namer *w, const char *s)
{
	bool done = false;

	while (s && *s && !w->overflow) {
		if (word_len(s)) {
			s = read_word(w, s);
		} else if (starts(s, "::")) {
			put_text(w, "::");
			w->comp = w->n;
			w->args = 0;
			s += 2;
		} else if (*s == '<') {
			s = read_angle(w, s);
		} else if (starts(s, "{anonymous}")) {
			put_text(w, "(anonymous namespace)");
			s += strlen("{anonymous}");
		} else if (*s == '(') {
			s = read_paren(w, s, &done);
		} else if (strchr(" *&", *s)) {
			/* gcc's lambdas have no parameters behind their name. */
			if (ends_in_lambda(w) && starts(s, " ["))
				break;
			next_entity(w);
			s++;
		} else {
			return false;
		}
	}
	if (w->overflow || w->n == w->comp)
		return false;
	return done || (s && (ends_in_lambda(w) || !*s));
}

void pretty_func__name(const char *text, char *out, size_t cap)
{
	const char *with = strstr(text, " [with ");
	struct namer w = {.out = out, .cap = cap, .with = with ? with + strlen(" [with ") : ""};
	size_t len = strlen(text);

	/* __func__, or nothing that could be taken apart */
	if (strchr(text, '(') && read_name(&w, text)) {
		out[w.n] = '\0';
		return;
	}
	if (len >= cap)
		len = cap - 1;
	memcpy(out, text, len);
	out[len] = '\0';
}
