// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A library that throws through its caller's function.
#include <stdexcept>

static int thrower(int x)
{
	if (x >= 0)
		throw std::runtime_error("expected");
	return x;
}

extern "C" int throw_through(int (*through)(int (*)(int), int), int n)
{
	int caught = 0;

	for (int i = 0; i < n; i++) {
		try {
			through(thrower, i);
		} catch (const std::exception &) {
			caught++;
		}
	}
	return caught;
}
