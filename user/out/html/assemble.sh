#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# assemble.sh OUT - makes OUT/head.html and OUT/tail.html of the files beside it: all style and all
# script inlined, and allowed by their hashes alone, so that nothing else in a page can ever run.
set -eu

src=$(dirname "$0")
out=$1
mkdir -p "$out"

# The script is one function, so its files share names with each other and with nothing else.
scripts='format.js dom.js data.js theme.js axis.js charts.js overtime.js table.js detail.js flame.js
	icicle.js slowest.js gputables.js gpu.js header.js main.js'
{
	echo "(() => {"
	echo "'use strict';"
	for f in $scripts; do
		cat "$src/$f"
	done
	echo "})();"
} >"$out/page.js"
cat "$src/page.css" "$src/views.css" "$src/gpu.css" >"$out/page.css"

# As the browser sees it: all between the tags, the line breaks there included.
hash_of()
{
	hex=$({ echo; cat "$1"; } | sha256sum | cut -c1-64 | sed 's/../\\x&/g')
	env printf '%b' "$hex" | base64
}

csp="default-src 'none'; script-src 'sha256-$(hash_of "$out/page.js")'"
csp="$csp; style-src 'sha256-$(hash_of "$out/page.css")'; base-uri 'none'; form-action 'none'"

while IFS= read -r line; do
	case $line in
	*@CSP@*) printf '%s%s%s\n' "${line%%@CSP@*}" "$csp" "${line#*@CSP@}" ;;
	@STYLE@) printf '<style>\n' && cat "$out/page.css" && printf '</style>\n' ;;
	@SCRIPT@) printf '<script>\n' && cat "$out/page.js" && printf '</script>\n' ;;
	*) printf '%s\n' "$line" ;;
	esac
done <"$src/page.html" >"$out/page.html"

sed '/^@DATA@$/,$d' "$out/page.html" >"$out/head.html"
sed '1,/^@DATA@$/d' "$out/page.html" >"$out/tail.html"
