// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	_ "embed"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/image"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
)

// enter runs a command in the image under a writable layer that vanishes with
// it, as uid 1000 or 0, without a network: what a sandbox does, in a few lines.
const enter = `
set -eu
root=$1 uid=$2; shift 2
layer=$(mktemp -d); trap 'rmdir "$layer"' EXIT
mount -t tmpfs none "$layer"; mkdir "$layer/up" "$layer/work" "$layer/root"
new=$layer/root
mount -t overlay -o "lowerdir=$root,upperdir=$layer/up,workdir=$layer/work" none "$new"
mount -t tmpfs none "$new/dev"; mount -t proc proc "$new/proc"
for n in null zero random urandom; do : >"$new/dev/$n"; mount --bind "/dev/$n" "$new/dev/$n"; done
home=/home/sandbox; [ "$uid" = 1000 ] || home=/root
status=0
env -i PATH="$SEARCH" LANG=C.UTF-8 HOME="$home" \
	chroot "$new" setpriv --reuid="$uid" --regid="$uid" --clear-groups --no-new-privs "$@" || status=$?
umount -R "$layer"
exit "$status"
`

func run(t *testing.T, img image.Image, uid, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", enter, "sh", img.Root, uid, "bash", "-c", "set -euo pipefail; cd /workspace\n"+script)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SEARCH=" + img.Env["PATH"], "TMPDIR=/tmp"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as uid %s: %v\n%s\n%s", uid, err, script, out)
	}
	return strings.TrimSpace(string(out))
}

//go:embed edited_test.py
var editedScript string

// makeWheel writes a small wheel; pip needs no network for it.
const makeWheel = `python3 - <<'END'
import zipfile
with zipfile.ZipFile("/tmp/leaf-1.0-py3-none-any.whl", "w") as z:
    z.writestr("leaf/__init__.py", "COLOUR = 'green'\n")
    z.writestr("leaf/__main__.py", "from leaf import COLOUR\ndef main(): print(COLOUR)\n")
    z.writestr("leaf-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: leaf\nVersion: 1.0\n")
    z.writestr("leaf-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("leaf-1.0.dist-info/entry_points.txt", "[console_scripts]\nleaf = leaf.__main__:main\n")
    z.writestr("leaf-1.0.dist-info/RECORD", "")
END
`

func TestPythonImage(t *testing.T) {
	skiptest.WithoutRoot(t, "it enters an image")
	img := imagetest.Python(t)
	checkSystem(t, img)

	for title, tc := range map[string]struct{ uid, script, want string }{
		"PythonHasNumpyAndMatplotlib": {"1000", `python -c 'import numpy, matplotlib; print((numpy.arange(6).reshape(2,3) @ numpy.ones(3)).tolist())'`, "[3.0, 12.0]"},
		"MatplotlibDraws":             {"1000", `python3 -c 'import matplotlib.pyplot as p; p.plot([1,2]); p.savefig("/artifacts/a.png")'; head -c 4 /artifacts/a.png | tail -c 3`, "PNG"},
		"PipInstallsForTheUserWithoutFlags": {"1000", makeWheel + `pip install -q /tmp/leaf-1.0-py3-none-any.whl
python -c 'import leaf; print(leaf.COLOUR, leaf.__file__)'; leaf`, "green /home/sandbox/.local/lib/python3.11/site-packages/leaf/__init__.py\ngreen"},
		"PipInstallsForAllAsRoot": {"0", makeWheel + `pip install -q /tmp/leaf-1.0-py3-none-any.whl
python -c 'import leaf; print(leaf.__file__)'`, "/usr/local/lib/python3.11/dist-packages/leaf/__init__.py"},
		"VenvWorks":           {"1000", `python -m venv v; v/bin/python -c 'import sys; print(sys.prefix)'`, "/workspace/v"},
		"IPythonRuns":         {"1000", `ipython --no-banner -c 'print(6*7)'`, "42"},
		"NodeRunsTypeScript":  {"1000", `printf 'interface P { n: number }\nconst p: P = { n: 42 };\nconsole.log(p.n as number);\n' >a.ts; node a.ts 2>/dev/null`, "42"},
		"NpmPacksAndInstalls": {"1000", `mkdir p; echo '{"name":"leaf","version":"1.0.0","bin":{"leaf":"l.js"}}' >p/package.json; printf '#!/usr/bin/env node\nconsole.log("green")\n' >p/l.js; chmod +x p/l.js; npm install -g --silent --offline ./p; leaf`, "green"},
		"PandasReads":         {"1000", `printf 'a,b\n1,2\n3,4\n' >t.csv; python -c 'import pandas; print(pandas.read_csv("t.csv").b.sum())'`, "6"},
		"PytestRuns":          {"1000", `printf 'def test_a():\n    assert True\n' >test_a.py; pytest -q | tail -n 1 | cut -d ' ' -f 1,2`, "1 passed"},
		"RequestsAsk":         {"1000", `python3 -c 'import requests; print(requests.Request("GET", "http://a/b", params={"c": 1}).prepare().url)'`, "http://a/b?c=1"},
		"CAndCPlusPlusAreCompiled": {"1000", `printf '#include <stdio.h>\nint main(void) { puts("c"); }\n' >c.c; printf '#include <iostream>\nint main() { std::cout << "c++" << std::endl; }\n' >d.cc
printf 'all: c d\n\t./c\n\t./d\n' >Makefile; make -s`, "c\nc++"},
		"AnExtensionOfPythonIsBuilt": {"1000", `printf '#include <Python.h>\nstatic struct PyModuleDef d = {PyModuleDef_HEAD_INIT, "leaf"};\nPyMODINIT_FUNC PyInit_leaf(void) { return PyModule_Create(&d); }\n' >leaf.c
printf 'from setuptools import Extension, setup\nsetup(name="leaf", version="1.0", ext_modules=[Extension("leaf", ["leaf.c"])])\n' >setup.py
python3 setup.py -q build_ext --inplace 2>/dev/null; python3 -c 'import leaf; print(leaf.__name__)'`, "leaf"},
		"SmallToolsAreThere": {"1000", `command -v less unzip xz ps top nano vi file patch zip bzip2 bash python python3 pip pip3 ipython ipython3 npx | wc -l`, "19"},
		"CertificatesAreThere": {"1000", `python -c 'import ssl; print(len(ssl.create_default_context().get_ca_certs()) > 50)'`,
			"True"},
		"TheLocaleIsUTF8":      {"1000", `locale charmap; python -c 'print("é🐍")'`, "UTF-8\né🐍"},
		"TimeZonesAreThere":    {"1000", `TZ=Europe/Paris date -d @0 +%H; python -c 'import zoneinfo; zoneinfo.ZoneInfo("Asia/Tokyo")'`, "01"},
		"ItsDirectoriesAreIts": {"1000", `stat -c '%a %U %n' /workspace /artifacts ~ ~/.local ~/.cache /tmp /var/tmp | tr '\n' ';'; touch /workspace/a /artifacts/a ~/a /tmp/a /var/tmp/a`, "755 sandbox /workspace;755 sandbox /artifacts;755 sandbox /home/sandbox;755 sandbox /home/sandbox/.local;755 sandbox /home/sandbox/.cache;1777 root /tmp;1777 root /var/tmp;"},
	} {
		t.Run(title, func(t *testing.T) {
			if got := run(t, img, tc.uid, tc.script); got != tc.want {
				t.Errorf("it prints %q, want %q", got, tc.want)
			}
		})
	}

	t.Run("AFileThatIsEditedTwiceInASecondRunsAsItIs", func(t *testing.T) {
		got := run(t, img, "1000", "cat >edited.py <<'END'\n"+editedScript+"END\npython3 -m venv --system-site-packages v\npython3 edited.py /usr/bin/python3 v/bin/python")
		each := "1 2\n1 2\n1 failed 1 passed\n"
		if want := each + each + "cached True"; got != want {
			t.Errorf("it prints\n%s\nwant\n%s", got, want)
		}
	})

	t.Run("WhatIsSaidToBeAbsentIs", func(t *testing.T) {
		if !slices.Contains(img.Absent, "docker") {
			t.Errorf("it lacks %v, want docker among them", img.Absent)
		}
		for _, name := range img.Absent {
			run(t, img, "1000", "! command -v "+name+"; ! python3 -c 'import "+name+"' 2>/dev/null")
		}
	})

	t.Run("VersionsSayWhatIsReallyInside", func(t *testing.T) {
		for tool, script := range map[string]string{
			"python": `python -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])'`, "node": `node -p process.versions.node`,
			"debian": `cat /etc/debian_version`, "npm": `npm --version`, "git": `dpkg-query -W -f '${source:Upstream-Version}' git`,
			"numpy": `dpkg-query -W -f '${source:Upstream-Version}' python3-numpy`,
		} {
			if got, want := img.Versions[tool], run(t, img, "1000", script); got != want {
				t.Errorf("%s is said to be %q and is %q", tool, got, want)
			}
		}
	})

	// Every name of the list, against what programs inside say of themselves.
	t.Run("EveryNameIsTrueOrSaidNotToBe", func(t *testing.T) {
		inside := map[string]string{
			"python": run(t, img, "1000", `python3 --version | cut -d ' ' -f 2`), "node": run(t, img, "1000", `node --version | tr -d v`),
			run(t, img, "1000", `. /etc/os-release; echo "$ID"`): run(t, img, "1000", `. /etc/os-release; echo "$VERSION_ID"`),
		}
		says := regexp.MustCompile(`(python|node|ubuntu|debian)[-:]([0-9.]+)`)
		s, err := image.Open(image.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		all, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(all, func(st image.Status) bool { return st.Name == img.Name })
		if at < 0 || !slices.Contains(all[at].Aliases, "debian-12") || !slices.Contains(all[at].Aliases, "code-interpreter") {
			t.Fatalf("listed are %+v", all)
		}
		for _, name := range append([]string{img.Name}, all[at].Aliases...) {
			holds := !strings.Contains(name, "/")
			if m := says.FindStringSubmatch(name); m != nil {
				holds = holds && (inside[m[1]] == m[2] || strings.HasPrefix(inside[m[1]], m[2]+"."))
			}
			if note := image.Note(name, img.Name, img.Versions); (note == "") != holds {
				t.Errorf("of %s is said %q, and inside are %v", name, note, inside)
			}
		}
		if strings.ContainsAny(all[at].Title, "0123456789") {
			t.Errorf("the title %q names a version that nobody reads from inside", all[at].Title)
		}
	})
}
