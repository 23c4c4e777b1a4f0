// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What g++ 12 and clang++ 14 say of functions in __PRETTY_FUNCTION__, and the names in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "elf/pretty_func.h"

static const struct {
	const char *text, *name;
} rows[] = {
    {"int main()", "main"},
    {"px::Pricer<T, N>::Pricer() [with T = double; int N = 3]", "px::Pricer<double, 3>::Pricer"},
    {"double px::Pricer<T, N>::price(T, const std::vector<T>&) const [with T = double; int N = 3]",
     "px::Pricer<double, 3>::price"},
    {"static T px::Pricer<T, N>::st() [with T = double; int N = 3]", "px::Pricer<double, 3>::st"},
    {"px::Pricer<T, N>::operator const char*() [with T = double; int N = 3]",
     "px::Pricer<double, 3>::operator const char*"},
    {"double px::Pricer<T, N>::operator()(int) [with T = double; int N = 3]",
     "px::Pricer<double, 3>::operator()"},
    {"px::Pricer<T, N>& px::Pricer<T, N>::operator<<(int) [with T = double; int N = 3]",
     "px::Pricer<double, 3>::operator<<"},
    {"bool px::Pricer<T, N>::operator<(int) const [with T = double; int N = 3]",
     "px::Pricer<double, 3>::operator<"},
    {"T px::Pricer<T, N>::operator[](int) & [with T = double; int N = 3]",
     "px::Pricer<double, 3>::operator[]"},
    {"px::Pricer<T, N>* px::Pricer<T, N>::operator->() [with T = double; int N = 3]",
     "px::Pricer<double, 3>::operator->"},
    {"bool px::Pricer<T, N>::operator==(const px::Pricer<T, N>&) const [with T = double; int N = "
     "3]",
     "px::Pricer<double, 3>::operator=="},
    {"static void* px::Pricer<T, N>::operator new(size_t) [with T = int; int N = 1; size_t = long "
     "unsigned int]",
     "px::Pricer<int, 1>::operator new"},
    {"px::Pricer<T, N>::Pricer() [with T = int; int N = 1]", "px::Pricer<int, 1>::Pricer"},
    {"px::Pricer<T, N>::~Pricer() [with T = int; int N = 1]", "px::Pricer<int, 1>::~Pricer"},
    {"decltype (f(1)) px::Pricer<T, N>::each(F) [with F = main()::<lambda(int)>; T = double; int N "
     "= 3; decltype (f(1)) = int]",
     "px::Pricer<double, 3>::each"},
    {"main()::<lambda(int)>", "main::{lambda}"},
    {"px::Pricer<T, N>::operator std::map<int, std::__cxx11::basic_string<char> >() [with T = "
     "double; int N = 3]",
     "px::Pricer<double, 3>::operator map"},
    {"px::Pricer<T, N>::operator std::function<int(int)>() [with T = double; int N = 3]",
     "px::Pricer<double, 3>::operator function"},
    {"void px::{anonymous}::anon()", "px::(anonymous namespace)::anon"},
    {"px::{anonymous}::anon()::<lambda(int)>", "px::(anonymous namespace)::anon::{lambda}"},
    {"void px::{anonymous}::anon()::Loc::m()", "px::(anonymous namespace)::anon::Loc::m"},
    {"px::{anonymous}::anon()::<lambda()>", "px::(anonymous namespace)::anon::{lambda}"},
    {"px::{anonymous}::anon()::<lambda()>::<lambda()>",
     "px::(anonymous namespace)::anon::{lambda}::{lambda}"},
    {"int px::{anonymous}::A::g()", "px::(anonymous namespace)::A::g"},
    {"void Book::operator()(int)", "Book::operator()"},
    {"void Book::operator()(T*, int) [with T = int]", "Book::operator()"},
    {"int (* Book::fp(int))(double)", "Book::fp"},
    {"int (& Book::arr())[3]", "Book::arr"},
    {"void (Book::* Book::mp())(int)", "Book::mp"},
    {"bool Book::operator,(int)", "Book::operator,"},
    {"Book& Book::operator++()", "Book::operator++"},
    {"Book::operator T*() [with T = int]", "Book::operator int*"},
    {"void Book::operator>>(int)", "Book::operator>>"},
    {"bool Book::operator>(int)", "Book::operator>"},
    {"int Book::operator<=>(int)", "Book::operator<=>"},
    {"E::E(int)", "E::E"},
    {"T tf(T) [with T = double]", "tf"},
    {"T tf(T) [with T = std::__cxx11::basic_string<char>]", "tf"},
    {"void var(A ...) [with A = {int, const char*, double}]", "var"},
    {"void nt() [with int (* f)(double) = ff]", "nt"},
    {"void ch() [with char c = '(']", "ch"},
    {"void ch() [with char c = '>']", "ch"},
    {"std::map<std::__cxx11::basic_string<char>, std::vector<int> > mm(std::function<void(int)>)",
     "mm"},
    {"long int operator\"\"_km(long long unsigned int)", "operator\"\"_km"},
    {"std::vector<int> tr(int)", "tr"},
    {"long long unsigned int ull()", "ull"},
    {"void cfun()", "cfun"},
    {"decltype(auto) da()", "da"},
    {"int ce()", "ce"},
    {"<lambda(auto:11)> [with auto:11 = int]", "{lambda}"},
    {"ML::<lambda()>", "ML::{lambda}"},
    {"ML::ML()", "ML::ML"},
    {"ML::ML()::<lambda()>", "ML::ML::{lambda}"},
    {"void Sp<int(double)>::f()", "Sp<int(double)>::f"},
    {"R Sp<R (*)(A)>::f() [with R = int; A = double]", "Sp<int(*)(double)>::f"},
    {"Box<T>::In<U>::In() [with U = char; T = int]", "Box<int>::In<char>::In"},
    {"T Box<T>::In<U>::f(U) const [with U = char; T = int]", "Box<int>::In<char>::f"},
    {"main()::<lambda()>", "main::{lambda}"},
    {"Box<T>::In<U>::~In() [with U = char; T = int]", "Box<int>::In<char>::~In"},
    {"px::Pricer<T, N>::~Pricer() [with T = double; int N = 3]", "px::Pricer<double, 3>::~Pricer"},
    {"px::Pricer<double, 3>::Pricer() [T = double, N = 3]", "px::Pricer<double, 3>::Pricer"},
    {"virtual double px::Pricer<double, 3>::price(T, const std::vector<T> &) const [T = double, N "
     "= 3]",
     "px::Pricer<double, 3>::price"},
    {"static T px::Pricer<double, 3>::st() [T = double, N = 3]", "px::Pricer<double, 3>::st"},
    {"const char *px::Pricer<double, 3>::operator const char *() [T = double, N = 3]",
     "px::Pricer<double, 3>::operator const char*"},
    {"double px::Pricer<double, 3>::operator()(int) [T = double, N = 3]",
     "px::Pricer<double, 3>::operator()"},
    {"Pricer<T, N> &px::Pricer<double, 3>::operator<<(int) [T = double, N = 3]",
     "px::Pricer<double, 3>::operator<<"},
    {"bool px::Pricer<double, 3>::operator<(int) const [T = double, N = 3]",
     "px::Pricer<double, 3>::operator<"},
    {"T px::Pricer<double, 3>::operator[](int) & [T = double, N = 3]",
     "px::Pricer<double, 3>::operator[]"},
    {"Pricer<T, N> *px::Pricer<double, 3>::operator->() [T = double, N = 3]",
     "px::Pricer<double, 3>::operator->"},
    {"bool px::Pricer<double, 3>::operator==(const Pricer<T, N> &) const [T = double, N = 3]",
     "px::Pricer<double, 3>::operator=="},
    {"static void *px::Pricer<int, 1>::operator new(size_t) [T = int, N = 1]",
     "px::Pricer<int, 1>::operator new"},
    {"px::Pricer<int, 1>::Pricer() [T = int, N = 1]", "px::Pricer<int, 1>::Pricer"},
    {"virtual px::Pricer<int, 1>::~Pricer() [T = int, N = 1]", "px::Pricer<int, 1>::~Pricer"},
    {"<dependent type> px::Pricer<double, 3>::each(F) [T = double, N = 3, F = (lambda at "
     "a.cc:30:194)]",
     "px::Pricer<double, 3>::each"},
    {"auto main()::(anonymous class)::operator()(int) const", "main::{lambda}"},
    {"std::map<int, std::string> px::Pricer<double, 3>::operator map() [T = double, N = 3]",
     "px::Pricer<double, 3>::operator map"},
    {"std::function<int (int)> px::Pricer<double, 3>::operator function() [T = double, N = 3]",
     "px::Pricer<double, 3>::operator function"},
    {"void px::(anonymous namespace)::anon()", "px::(anonymous namespace)::anon"},
    {"auto px::(anonymous namespace)::anon()::(anonymous class)::operator()(int) const",
     "px::(anonymous namespace)::anon::{lambda}"},
    {"void px::(anonymous namespace)::anon()::Loc::m()", "px::(anonymous namespace)::anon::Loc::m"},
    {"auto px::(anonymous namespace)::anon()::(anonymous class)::operator()() const",
     "px::(anonymous namespace)::anon::{lambda}"},
    {"auto px::(anonymous namespace)::anon()::(anonymous class)::operator()()::(anonymous "
     "class)::operator()() const",
     "px::(anonymous namespace)::anon::{lambda}::{lambda}"},
    {"int px::(anonymous namespace)::A::g()", "px::(anonymous namespace)::A::g"},
    {"void Book::operator()(T *, int) [T = int]", "Book::operator()"},
    {"int (*Book::fp(int))(double)", "Book::fp"},
    {"int (&Book::arr())[3]", "Book::arr"},
    {"void (Book::*Book::mp())(int)", "Book::mp"},
    {"Book &Book::operator++()", "Book::operator++"},
    {"T *Book::operator int *() [T = int]", "Book::operator int*"},
    {"T tf(T) [T = double]", "tf"},
    {"T tf(T) [T = std::basic_string<char>]", "tf"},
    {"void var(A...) [A = <int, const char *, double>]", "var"},
    {"void nt() [f = &ff]", "nt"},
    {"void ch() [c = '(']", "ch"},
    {"void ch() [c = '>']", "ch"},
    {"std::map<std::string, std::vector<int>> mm(std::function<void (int)>)", "mm"},
    {"long operator\"\"_km(unsigned long long)", "operator\"\"_km"},
    {"unsigned long long ull()", "ull"},
    {"auto (anonymous class)::operator()(auto) const [x:auto = int]", "{lambda}"},
    {"auto ML::(anonymous class)::operator()() const", "ML::{lambda}"},
    {"auto ML::ML()::(anonymous class)::operator()() const", "ML::ML::{lambda}"},
    {"void Sp<int (double)>::f()", "Sp<int(double)>::f"},
    {"R Sp<int (*)(double)>::f() [T = int (*)(double)]", "Sp<int(*)(double)>::f"},
    {"Box<int>::In<char>::In() [T = int, U = char]", "Box<int>::In<char>::In"},
    {"T Box<int>::In<char>::f(U) const [T = int, U = char]", "Box<int>::In<char>::f"},
    {"auto main()::(anonymous class)::operator()() const", "main::{lambda}"},
    {"Box<int>::In<char>::~In() [T = int, U = char]", "Box<int>::In<char>::~In"},
    {"virtual px::Pricer<double, 3>::~Pricer() [T = double, N = 3]",
     "px::Pricer<double, 3>::~Pricer"},
    {"void tl(T)::L::m() [with T = int]", "tl::L::m"},
    {"tl<int>(int)::<lambda(auto:1)> [with auto:1 = int]", "tl::{lambda}"},
    {"tl<int>(int)::<lambda(auto:1)>::<lambda()>", "tl::{lambda}::{lambda}"},
    {"S::c() const::<lambda()>", "S::c::{lambda}"},
    {"void S::r() &&", "S::r"},
    {"auto S::ret()", "S::ret"},
    {"void S::<unnamed struct>::f()", "S::(anonymous struct)::f"},
    {"void S::pk(T&&, A&& ...) const & [with T = int; A = {int, const char (&)[2]}]", "S::pk"},
    {"static int S::sm(const char*)", "S::sm"},
    {"S::operator bool() const::<lambda()>", "S::operator bool::{lambda}"},
    {"S::operator int*() const", "S::operator int*"},
    {"void Tup<A>::f() [with A = {int, double*, One<One<int> >}]",
     "Tup<int, double*, One<One<int>>>::f"},
    {"void TT<C, T>::f() [with C = One; T = int]", "TT<One, int>::f"},
    {"void NN<N>::f() [with long unsigned int N = 5]", "NN<5>::f"},
    {"void EE<e>::f() [with En e = En::b]", "EE<En::b>::f"},
    {"void BB<b>::f() [with bool b = true]", "BB<true>::f"},
    {"void CC<c>::f() [with char c = '>']", "CC<'>'>::f"},
    {"void CC<c>::f() [with char c = '(']", "CC<'('>::f"},
    {"void<unnamed struct>::f()", "(anonymous struct)::f"},
    {"void rq(T) requires  sizeof (T) < 100 [with T = int]", "rq"},
    {"long unsigned int n::v1::Q::f(short unsigned int) volatile", "n::v1::Q::f"},
    {"bool n::v1::operator==(const Q&, const Q&)", "n::v1::operator=="},
    {"n::v1::Q n::v1::operator+(Q, Q)", "n::v1::operator+"},
    {"T* ptr(T**) [with T = long int]", "ptr"},
    {"void tl(int)::L::m()", "tl::L::m"},
    {"auto tl(int)::(anonymous class)::operator()(auto) const [a:auto = int]", "tl::{lambda}"},
    {"auto tl(int)::(anonymous class)::operator()(int)::(anonymous class)::operator()() const",
     "tl::{lambda}::{lambda}"},
    {"auto S::c()::(anonymous class)::operator()() const", "S::c::{lambda}"},
    {"void S::(anonymous struct)::f()", "S::(anonymous struct)::f"},
    {"void S::pk(T &&, A &&...) const & [T = int, A = <int, const char (&)[2]>]", "S::pk"},
    {"static int S::sm(const char *)", "S::sm"},
    {"auto S::operator bool()::(anonymous class)::operator()() const",
     "S::operator bool::{lambda}"},
    {"int *S::operator int *() const", "S::operator int*"},
    {"void Tup<int, double *, One<One<int>>>::f() [A = <int, double *, One<One<int>>>]",
     "Tup<int, double*, One<One<int>>>::f"},
    {"void TT<One, int>::f() [C = One, T = int]", "TT<One, int>::f"},
    {"void NN<5>::f() [N = 5]", "NN<5>::f"},
    {"void EE<En::b>::f() [e = En::b]", "EE<En::b>::f"},
    {"void BB<true>::f() [b = true]", "BB<true>::f"},
    {"void CC<'>'>::f() [c = '>']", "CC<'>'>::f"},
    {"void CC<'('>::f() [c = '(']", "CC<'('>::f"},
    {"void (anonymous struct)::f()", "(anonymous struct)::f"},
    {"void rq(T) [T = int]", "rq"},
    {"unsigned long n::Q::f(unsigned short) volatile", "n::Q::f"},
    {"bool n::operator==(const n::Q &, const n::Q &)", "n::operator=="},
    {"n::Q n::operator+(n::Q, n::Q)", "n::operator+"},
    {"T *ptr(T **) [T = long]", "ptr"},
    {"handler", "handler"},
    {"Feed::on_packet", "Feed::on_packet"},
    {"", ""},
    {"void f(", "void f("},
    {"((((", "(((("},
    {"int (", "int ("},
};

static void t_names(void **state)
{
	char name[512];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pretty_func__name(rows[i].text, name, sizeof(name));
		if (strcmp(name, rows[i].name))
			fail_msg("%s: %s, not %s", rows[i].text, name, rows[i].name);
	}
}

/* Every text cut short, and a byte changed: an end, and a name within bounds. */
static void t_damaged(void **state)
{
	static const char bytes[] = "<>()[]{}'\"\\:; &*,o=~";

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(rows[i].text);
		char *text = malloc(len + 1);

		for (size_t at = 0; at < len; at++) {
			char name[48];

			memcpy(text, rows[i].text, len + 1);
			for (size_t k = 0; k < sizeof(bytes); k++) { /* with the NUL */
				text[at] = bytes[k];
				pretty_func__name(text, name, sizeof(name));
				assert_non_null(memchr(name, 0, sizeof(name)));
			}
		}
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_names), cmocka_unit_test(t_damaged)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
