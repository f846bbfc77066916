# Copyright 2026 The sandpit authors
# SPDX-License-Identifier: Apache-2.0

# Prints "tool=version" for each tool that is there of those that it knows, by
# running it, and "absent=name" for each of those that people look for and the
# image lacks. Who needs a tool looks for its line.
# Whole outputs are cut here: a pipe into head kills its writer now and then.
set -euo pipefail
say() { printf '%s=%s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null; }

v=$(cat /etc/debian_version); say debian "$v"
say bash "${BASH_VERSION%%(*}"
if has python3; then
	python3 -c '
import importlib, platform
from importlib.util import find_spec
print("python=" + platform.python_version())
for name in "numpy", "pandas", "matplotlib", "requests":
    if find_spec(name) is not None:
        print(name + "=" + importlib.import_module(name).__version__)
if find_spec("matplotlib") is not None:
    import matplotlib.pyplot
for name in "scipy", "sklearn", "torch":
    if find_spec(name) is None:
        print("absent=" + name)
'
fi
if has pip; then v=$(pip --version); v=${v#pip }; say pip "${v%% *}"; fi
if has pytest; then v=$(pytest --version); say pytest "${v#pytest }"; fi
if has ipython; then v=$(ipython --version); say ipython "$v"; fi
if has node; then v=$(node --version); say node "$v"; fi
if has npm; then v=$(npm --version); say npm "$v"; fi
if has gcc; then v=$(gcc -dumpfullversion); say gcc "$v"; fi
if has g++; then v=$(g++ -dumpfullversion); say gxx "$v"; fi
if has make; then v=$(make --version); v=${v%%$'\n'*}; say make "${v##* }"; fi
if has git; then v=$(git --version); say git "${v##* }"; fi
if has curl; then v=$(curl --version); v=${v#curl }; say curl "${v%% *}"; fi
if has wget; then v=$(wget --version); v=${v#GNU Wget }; say wget "${v%% *}"; fi
if has rsync; then v=$(rsync --version); v=${v#rsync}; v=${v#*version }; say rsync "${v%% *}"; fi
if has ssh; then v=$(ssh -V 2>&1); v=${v#OpenSSH_}; v=${v%%,*}; say ssh "${v%% *}"; fi
if has jq; then v=$(jq --version); say jq "${v#jq-}"; fi
if has rg; then v=$(rg --version); v=${v%%$'\n'*}; v=${v#ripgrep }; say ripgrep "${v%% *}"; fi

for name in cargo cmake docker gcc go java node php python3 ruby uv; do
	has "$name" || say absent "$name"
done

# Node runs TypeScript as it is.
if has node; then
	printf 'const n: number = 42;\nprocess.exit(n === 42 ? 0 : 1);\n' >/tmp/check.ts
	node /tmp/check.ts
fi
