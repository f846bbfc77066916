# Copyright 2026 The sandpit authors
# SPDX-License-Identifier: Apache-2.0

# Prints "tool=version" for each tool of the python image, by running it, and
# "absent=name" for each of those that people look for and it lacks.
# Whole outputs are cut here: a pipe into head kills its writer now and then.
set -euo pipefail
say() { printf '%s=%s\n' "$1" "$2"; }

v=$(cat /etc/debian_version); say debian "$v"
say bash "${BASH_VERSION%%(*}"
v=$(python -c 'import platform; print(platform.python_version())'); say python "$v"
v=$(pip --version); v=${v#pip }; say pip "${v%% *}"
v=$(python3 -c 'import numpy; print(numpy.__version__)'); say numpy "$v"
v=$(python3 -c 'import matplotlib.pyplot; print(matplotlib.__version__)'); say matplotlib "$v"
v=$(python3 -c 'import pandas; print(pandas.__version__)'); say pandas "$v"
v=$(python3 -c 'import requests; print(requests.__version__)'); say requests "$v"
v=$(pytest --version); say pytest "${v#pytest }"
v=$(ipython --version); say ipython "$v"
v=$(node --version); say node "$v"
v=$(npm --version); say npm "$v"
v=$(gcc -dumpfullversion); say gcc "$v"
v=$(g++ -dumpfullversion); say gxx "$v"
v=$(make --version); v=${v%%$'\n'*}; say make "${v##* }"
v=$(git --version); say git "${v##* }"
v=$(curl --version); v=${v#curl }; say curl "${v%% *}"
v=$(wget --version); v=${v#GNU Wget }; say wget "${v%% *}"
v=$(rsync --version); v=${v#rsync}; v=${v#*version }; say rsync "${v%% *}"
v=$(ssh -V 2>&1); v=${v#OpenSSH_}; v=${v%%,*}; say ssh "${v%% *}"
v=$(jq --version); say jq "${v#jq-}"
v=$(rg --version); v=${v%%$'\n'*}; v=${v#ripgrep }; say ripgrep "${v%% *}"

for name in cargo cmake docker go java php ruby uv; do
	command -v "$name" >/dev/null || say absent "$name"
done
python3 -c '
from importlib.util import find_spec
for name in "scipy", "sklearn", "torch":
    if find_spec(name) is None:
        print("absent=" + name)
'

# Node runs TypeScript as it is.
printf 'const n: number = 42;\nprocess.exit(n === 42 ? 0 : 1);\n' >/tmp/check.ts
node /tmp/check.ts
