# Copyright 2026 The sandpit authors
# SPDX-License-Identifier: Apache-2.0

# Prints "TOOL NAME VERSION" for each package that is installed for all users, as the files say that
# the package tools keep: asking the tools themselves takes seconds. What Python finds first is last.
dpkg-query -W -f 'apt ${Package}:${Architecture} ${Version}\n' 2>/dev/null
for dir in /usr/lib/python3/dist-packages /usr/lib/python3.*/site-packages /usr/local/lib/python3.*/site-packages /usr/local/lib/python3.*/dist-packages; do
	for one in "$dir"/*.dist-info "$dir"/*.egg-info; do
		[ -e "$one" ] || continue
		one=${one##*/}
		one=${one%.dist-info}
		one=${one%.egg-info}
		rest=${one#*-}
		[ "$rest" = "$one" ] || echo "pip ${one%%-*} ${rest%%-*}"
	done
done
for dir in /usr/lib/node_modules /usr/local/lib/node_modules; do
	for one in "$dir"/[!@.]* "$dir"/@*/*; do
		[ -f "$one/package.json" ] || continue
		version=$(sed -n 's/^[[:space:]]*"version":[[:space:]]*"\([^"]*\)".*/\1/p' "$one/package.json" | sed -n 1p)
		echo "npm ${one#"$dir"/} $version"
	done
done
exit 0
